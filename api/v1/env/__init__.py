"""`/v1` resource: environment variables of a project."""
