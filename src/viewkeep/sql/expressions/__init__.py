"""Expressions of SQL: constants, functions, columns, and subqueries in them."""
