"""Development cluster: a real Kubernetes on a bare machine with Crewyard installed. Standard library only."""
