"""The ports on which pods of crews reach API server and controller by TLS. Used by both."""
