"""Background loops of the API server: retention, garbage collection, log sealing, accounting, backup."""
