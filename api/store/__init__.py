"""What the facade keeps: the index, event logs, build logs and blobs."""
