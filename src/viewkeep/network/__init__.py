"""SQL views in one process: a network of maintained queries that feed each other."""
