"""Measurements of a running installation, each against a peer in the same run (`make bench`)."""
