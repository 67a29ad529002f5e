"""HTTP building blocks without knowledge of resources: server, bodies, queries, negotiation, responses."""
