"""Container images: layers, manifests, image files, the runner's files."""
