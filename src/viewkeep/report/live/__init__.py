"""A live query: its result, its changes and what they cost."""
