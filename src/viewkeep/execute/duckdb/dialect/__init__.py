"""SQL as Spark computes it in ANSI mode, in the text of DuckDB."""
