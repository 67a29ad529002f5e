"""Objects become rows: a list and a watch of our own per kind, and what has to be set right now and then."""
