"""Build contexts on other people's servers: fetched once, with every step checked, and kept as uploads."""
