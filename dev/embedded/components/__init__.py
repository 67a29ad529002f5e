"""Processes of the embedded node, one module each: settings in, a `ProcessSpec` out."""
