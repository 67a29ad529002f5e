"""Network policies on the embedded node: what a policy says becomes rules of the packet filter."""
