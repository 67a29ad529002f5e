"""Steps and clients that talk to the image registry: push, prune, credentials."""
