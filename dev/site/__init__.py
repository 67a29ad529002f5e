"""The documentation site: what its reference pages take from the code, and the site generator's hooks."""
