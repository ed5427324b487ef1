"""Delta scripts on Spark."""
