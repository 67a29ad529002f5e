"""Git remotes: listings and fetches in child processes, and the failures they report."""
