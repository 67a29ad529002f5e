"""Code of the build pods: fetch, validate, assemble, push. Never executes code of a crew."""
