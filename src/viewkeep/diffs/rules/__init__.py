"""How changes of an operator's inputs change its output: one file per operator."""
