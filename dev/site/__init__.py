"""Documentation site: reference pages generated from the code, and hooks of the site generator."""
