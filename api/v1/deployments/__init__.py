"""`/v1` resource: deployments and their build logs."""
