"""Reads and validates the request body before a route sees it. Called by `api.routing.endpoint`."""

import asyncio
import json
import math
from collections.abc import Iterable
from typing import Any

from aiohttp import hdrs, web
from jsonschema.protocols import Validator

from api import errors
from api.http import expect_continue, validation
from crds.json_depth import MAX_STORED_DEPTH, too_deep

OTHER_FIELDS_BYTES = 256 * 1024
"""For white space and the fields beside an input."""
ESCAPE_FACTOR = 3
"""A character of two bytes may be escaped as six."""
MIN_BODY_LIMIT_BYTES = ESCAPE_FACTOR * 1024 * 1024 + OTHER_FIELDS_BYTES
"""Minimum of the limit on JSON bodies: an answer may have 1 MiB where an input may not."""
BODY_TIMEOUT_SECONDS = 60.0
"""Deadline for a whole body; a slow connection needs a quarter of it."""
_TOO_DEEP = f"the body is nested in more than {MAX_STORED_DEPTH} levels; make it flatter"


def max_body_bytes(input_bytes: int) -> int:
    """Return the limit on JSON bodies: an input with white space and escapes, plus the other fields."""
    return max(MIN_BODY_LIMIT_BYTES, ESCAPE_FACTOR * input_bytes + OTHER_FIELDS_BYTES)


def _reject_duplicates(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise errors.invalid(f"the body gives {name[:100]!r} twice in one object", name[:100])
        result[name] = value
    return result


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _parse_finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def parse(raw: bytes) -> Any:
    """Parse a body. Raises a 400 if it is not strict JSON, or if the store cannot represent it."""
    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=_reject_duplicates,
            parse_constant=_reject_constant,
            parse_float=_parse_finite,
        )
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise errors.invalid("the body is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise errors.invalid("the body contains a lone surrogate, which is not a character") from error
    except RecursionError as error:
        raise errors.invalid(_TOO_DEEP) from error
    except json.JSONDecodeError as error:
        raise errors.invalid(
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except ValueError as error:
        raise errors.invalid(f"the body is not JSON: {error}"[:300]) from error
    if too_deep(value):
        raise errors.invalid(_TOO_DEEP)
    return value


def declared_bytes(request: web.Request) -> int:
    """Return how many bytes the body has, or may have if the request does not say."""
    limit = request.client_max_size
    return min(request.content_length if request.content_length is not None else limit, limit)


async def read(request: web.Request, validator: Validator) -> dict[str, Any]:
    """Return the body as an object that matches its schema; an absent body counts as `{}`.

    Raises a 415 for a body not declared as JSON or compressed, a 413 if it is too large, a 408 if it
    takes too long, a 400 if it does not match.
    """
    declared, limit = request.content_length, request.client_max_size
    if declared is not None and declared > limit:
        raise errors.too_large(limit, "the request body")
    if request.body_exists and request.content_type != "application/json" and declared != 0:
        raise errors.HttpApiError(
            415, "send the body as JSON, with the header Content-Type: application/json"
        )
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise errors.HttpApiError(415, "send the body uncompressed, without the header Content-Encoding")
    await expect_continue.send_continue(request)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            raw = await request.read()
    except TimeoutError as error:
        raise errors.HttpApiError(
            408, f"the body took longer than {BODY_TIMEOUT_SECONDS:.0f} s; send it again"
        ) from error
    except web.HTTPRequestEntityTooLarge as error:
        raise errors.too_large(limit, "the request body") from error
    body = parse(raw) if raw.strip() else {}
    validation.check(validator, body)
    result: dict[str, Any] = body
    return result
