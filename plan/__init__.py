"""From a source tree to a plan: what a crew is, what it needs and what its image is built from. No I/O."""
