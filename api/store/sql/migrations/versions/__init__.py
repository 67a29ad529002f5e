"""One file a step, numbered; a released step is never edited."""
