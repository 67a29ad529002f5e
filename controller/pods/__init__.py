"""Parts that all pods of the controller share: security context, placement, environment, egress."""
