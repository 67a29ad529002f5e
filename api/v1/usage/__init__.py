"""Usage and cost of a project by day under `/v1`."""
