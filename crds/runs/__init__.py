"""Values in a Run."""
