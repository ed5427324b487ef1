"""Types of values, and the functions that views may use with their type rules."""
