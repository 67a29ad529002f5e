"""A flow of two steps: a crew of one finds the tide out, then plain code makes a plan of it."""
