"""Container images that the dev cluster needs, and the Kaniko build on it."""
