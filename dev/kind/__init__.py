"""Dev cluster in Docker: a kind cluster and a registry container."""
