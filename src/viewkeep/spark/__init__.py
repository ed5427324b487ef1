"""Runs delta scripts on Spark DataFrames; the only part that imports pyspark."""
