"""Commands about one query: what is possible for it, and its result kept in one process."""
