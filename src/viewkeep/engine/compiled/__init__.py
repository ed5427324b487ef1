"""The compiled engine: a trigger program as machine code."""
