"""Orders of what waits, computed identically by API and controller."""
