"""One query block of SQL, clause by clause, and what combines blocks."""
