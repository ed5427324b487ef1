"""Delta scripts for people, in the algebra of the papers."""
