"""Container images that the dev cluster needs, and Kaniko builds on it."""
