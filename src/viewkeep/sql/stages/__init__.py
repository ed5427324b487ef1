"""SQL views as conjunctive queries that feed each other, for maintenance in one process."""
