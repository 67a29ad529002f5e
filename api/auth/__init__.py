"""Authentication and authorization: API keys, Kubernetes tokens and GitHub workflow tokens."""
