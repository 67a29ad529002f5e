"""Python packages of a crew: requirements, lock files, the crew's own project, pip's log."""
