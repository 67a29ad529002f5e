"""`/v1` resource: uploads of source archives."""
