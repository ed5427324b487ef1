"""One view of a lake: its plan, what is stored of it, what it reflects, what its refreshes cost."""
