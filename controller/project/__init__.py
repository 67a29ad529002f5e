"""Projects: source revision, order of Deployments, and the active Deployment."""
