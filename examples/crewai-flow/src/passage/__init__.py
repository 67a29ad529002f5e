"""A flow of two steps: a crew of one agent finds the tide, then plain code writes a plan."""
