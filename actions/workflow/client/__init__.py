"""HTTP client of the Crewyard API for the actions: credentials, requests, retries, event streams."""
