"""Process 1: claims the run, starts the crew's process, watches it, and reports what it does."""
