"""`/v1` resource: projects."""
