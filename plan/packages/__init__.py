"""Python packages of a crew: requirements, the crew's own project, Dockerfile, pip's log."""
