"""Image registry of the embedded cluster and its token server."""
