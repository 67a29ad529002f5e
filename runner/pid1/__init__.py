"""Process 1: claims the run, starts the crew's process, supervises it, and reports events and result."""
