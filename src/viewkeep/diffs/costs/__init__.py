"""How large the relations of a delta script are, and how many rows it goes through."""
