"""Tables, views and refreshes of a lake."""
