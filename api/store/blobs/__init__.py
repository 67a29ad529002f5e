"""Blobs in a directory or an object store bucket: streams, checksums, pre-signed URLs."""
