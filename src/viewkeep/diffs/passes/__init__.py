"""The passes from a view to its delta script, one file each."""
