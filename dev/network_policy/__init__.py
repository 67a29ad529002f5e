"""Network policies on the embedded node: NetworkPolicy objects become nftables rules."""
