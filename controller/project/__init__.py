"""Projects: their source's head, the order of their Deployments, and which of these is active."""
