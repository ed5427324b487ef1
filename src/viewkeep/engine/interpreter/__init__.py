"""The reference engine: it defines what is correct and counts elementary steps."""
