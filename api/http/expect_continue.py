"""`Expect: 100-continue`: the body is asked for once it is wanted, not before the key was looked at.

aiohttp would ask for it at once, and refuse other expectations on its own, outside of our answers;
they may be ignored (RFC 9110, 10.1.1). Called by `api.routing.endpoint` and by whatever reads a body.
"""

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

_ASKED = web.RequestKey("asked_for_body", bool)


async def later(_: web.Request) -> None:
    """What aiohttp calls for a request with an expectation, before anything of ours."""


async def ask(request: web.Request) -> None:
    """Asks for the body, if the sender waits for that. To be called just before it is read."""
    waits = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if not waits or request.get(_ASKED) or request.version < HttpVersion11:
        return
    request[_ASKED] = True
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # What was written is no part of the answer, whose headers are still to come.
    request.writer.output_size = 0
