"""Image garbage collection in the registry: policy, decisions, the prune pod."""
