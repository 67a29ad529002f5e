"""What GitHub is told of a project's deployments, and what it is asked about pull requests."""
