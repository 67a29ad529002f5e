"""The ground in Docker: a cluster of kind, and a registry container beside it."""
