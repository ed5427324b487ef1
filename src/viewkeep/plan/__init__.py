"""Planners: from a query to a trigger program. `program.py` is the language they all emit."""
