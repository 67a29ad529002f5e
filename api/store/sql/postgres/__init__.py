"""PostgreSQL engine of the index, for several replicas of the API server."""
