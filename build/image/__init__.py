"""Container images as values: layers, manifests, the runner's files."""
