"""Health, metrics and gauges of the controller."""
