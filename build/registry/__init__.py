"""Image registry: client, credentials and the steps push and prune."""
