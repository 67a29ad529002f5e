"""Rate limits per API key and per client address, counted in memory or in Redis."""
