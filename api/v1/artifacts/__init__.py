"""`/v1` resource: artifacts of a run."""
