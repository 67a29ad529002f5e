"""`Expect: 100-continue`: request the body only after authentication, when it is about to be read.

By default aiohttp sends 100 Continue immediately and rejects other expectations without the error
form of the API; a server may ignore those (RFC 9110, 10.1.1). Called by `api.routing.endpoint` and
by all code that reads a body.
"""

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

_CONTINUE_SENT = web.RequestKey("asked_for_body", bool)


async def defer(_: web.Request) -> None:
    """Do nothing: the expect handler of aiohttp, called before the route."""


async def send_continue(request: web.Request) -> None:
    """Send 100 Continue if the client waits for it. Call it just before reading the body."""
    expects_continue = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if not expects_continue or request.get(_CONTINUE_SENT) or request.version < HttpVersion11:
        return
    request[_CONTINUE_SENT] = True
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    # The interim response does not count as output of the response that follows.
    request.writer.output_size = 0
