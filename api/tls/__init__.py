"""The port on which pods of crews reach the API server by TLS."""
