"""What can be asked: conjunctive queries, their constraints, and the algebra of SQL views."""
