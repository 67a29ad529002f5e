"""`/v1` resource: runs, their events and logs."""
