"""The `viewkeep` command: arguments only; the work is done by the parts it calls."""
