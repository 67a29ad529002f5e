"""The service on a cluster that runs already: the one that kubectl's current context names."""
