"""Network of the embedded node: bridge, DNS, firewall, certificates."""
