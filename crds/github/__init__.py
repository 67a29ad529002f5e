"""What API server and controller share about GitHub."""
