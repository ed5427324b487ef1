"""What the driver does of a refresh on Spark: small diffs, and the rows that they look up."""
