"""A crew of two agents: one looks things up in a tide table, the other writes the report."""
