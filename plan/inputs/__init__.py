"""JSON Schema of a crew's input, from its configuration or by reading its source; executes nothing."""
