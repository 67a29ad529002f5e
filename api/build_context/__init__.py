"""Build contexts on external servers: fetched once, with every redirect checked, and stored as uploads."""
