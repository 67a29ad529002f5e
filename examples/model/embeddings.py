"""`/v1/embeddings`: vectors that depend on nothing but the text."""

import array
import base64
import hashlib
import math
from typing import Any

from prompt import tokens

Json = dict[str, Any]


def whole(body: Json) -> Json:
    """Return a vector of length one for each text."""
    given = body.get("input") or ""
    # A list of numbers is one text, as tokens.
    single = isinstance(given, str) or all(isinstance(item, int) for item in given)
    texts = [str(given)] if single else [str(item) for item in given]
    size = int(body.get("dimensions") or 1536)
    data = []
    for index, text in enumerate(texts):
        vector = _vector(text, size)
        packed = base64.b64encode(array.array("f", vector).tobytes()).decode()
        form = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": form})
    count = sum(map(tokens, texts))
    model = body.get("model") or "scripted"
    return {
        "object": "list",
        "model": model,
        "data": data,
        "usage": {"prompt_tokens": count, "total_tokens": count},
    }


def _vector(text: str, size: int) -> list[float]:
    seed = hashlib.shake_256(text.encode()).digest(size)
    values = [byte - 127.5 for byte in seed]
    length = math.sqrt(sum(value * value for value in values))
    return [value / length for value in values]
