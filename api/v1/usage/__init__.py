"""`/v1` resource: usage and cost of a project by day."""
