"""Output of the crew: pipes, lines, masks, and the queue of events."""
