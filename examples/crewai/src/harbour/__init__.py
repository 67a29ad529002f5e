"""A crew of two: one looks things up in a tide table, the other writes the report."""
