"""Inputs and outputs of unusual sizes and kinds."""

import hashlib
import json


def measured(inputs):
    """Gives what arrived, by digest: the input is too large to be the output."""
    text = json.dumps(inputs, sort_keys=True, separators=(",", ":"))
    return {"sha256": hashlib.sha256(text.encode()).hexdigest(), "bytes": len(text)}


def large(inputs):
    """Gives an output of the size that is asked for."""
    return {"text": "x" * int(inputs["bytes"])}
