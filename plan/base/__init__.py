"""A crew's own Dockerfile, whose image is the base of its dependency image."""
