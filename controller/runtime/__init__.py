"""Controller runtime: watch, cache, work queues, workers, apply."""
