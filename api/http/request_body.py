"""A request's body, read and checked before any route sees it. Called by `api.routing.endpoint`."""

import asyncio
import json
import math
from collections.abc import Iterable
from typing import Any

from aiohttp import hdrs, web
from jsonschema.protocols import Validator

from api import errors
from api.http import expect_continue, validation
from crds.json_depth import DEEPEST, too_deep

LEAST_BODY = 2 * 1024 * 1024
"""Bytes that any JSON body may have, however small an installation's inputs are."""
BODY_SECONDS = 60.0
"""In which a body must have arrived; a whole one takes a slow line a quarter of that."""
_DEEP = f"the body is nested in more than {DEEPEST} levels; make it flatter"


def largest(input_bytes: int) -> int:
    """Bytes of any JSON body: an input with its white space and escapes, and the fields beside it."""
    return max(LEAST_BODY, 2 * input_bytes)


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise errors.invalid(f"the body gives {name[:100]!r} twice in one object", name[:100])
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def parse(raw: bytes) -> Any:
    """The JSON value of a body. Raises a 400 for what is not strictly JSON, or would not survive storing."""
    try:
        value = json.loads(
            raw.decode(), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise errors.invalid("the body is not UTF-8") from error
    except UnicodeEncodeError as error:
        raise errors.invalid("the body has half of a surrogate pair, which is no character") from error
    except RecursionError as error:
        raise errors.invalid(_DEEP) from error
    except json.JSONDecodeError as error:
        raise errors.invalid(
            f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except ValueError as error:
        raise errors.invalid(f"the body is not JSON: {error}"[:300]) from error
    if too_deep(value):
        raise errors.invalid(_DEEP)
    return value


async def read(request: web.Request, checker: Validator) -> dict[str, Any]:
    """The body as an object that fits its schema; without a body, `{}` is checked.

    Raises 415 where a body is not declared as JSON, or is compressed, 413 where it is too large, 408 where
    it takes too long, 400 where it does not fit.
    """
    declared, most = request.content_length, request.client_max_size
    if declared is not None and declared > most:
        raise errors.too_large(most, "the request's body")
    if request.body_exists and request.content_type != "application/json" and declared != 0:
        raise errors.ApiError(415, "send the body as JSON, with the header Content-Type: application/json")
    if request.headers.get(hdrs.CONTENT_ENCODING, "identity").lower() != "identity":
        raise errors.ApiError(415, "send the body as it is, without the header Content-Encoding")
    await expect_continue.ask(request)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            raw = await request.read()
    except TimeoutError as error:
        raise errors.ApiError(
            408, f"the body took longer than {BODY_SECONDS:.0f} s; send it again"
        ) from error
    except web.HTTPRequestEntityTooLarge as error:
        raise errors.too_large(most, "the request's body") from error
    body = parse(raw) if raw.strip() else {}
    validation.check(checker, body)
    found: dict[str, Any] = body
    return found
