"""The ground: a real Kubernetes on a bare machine, and the service installed on it. Standard library only."""
