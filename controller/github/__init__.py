"""Reports of deployments to GitHub, and polls of pull requests."""
