"""The HTTP server of the API server. Called by `api.__main__`."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from api import errors
from api.http import responses
from http_server.connections import BoundedSite, ClientConnections, raise_file_limit


def refuse(reason: str) -> web.Response:
    """Return the error for bytes that are no HTTP request."""
    # After a colon, the parser repeats them.
    summary = reason.partition(":")[0]
    response = responses.error_response(errors.invalid(f"this is not a valid HTTP request: {summary}"))
    response.headers["Server"] = "crewyard"
    return response


async def serve(
    application: Awaitable[web.Application],
    host: str,
    port: int,
    shutdown_seconds: float,
    wait_for_stop: Callable[[], Awaitable[object]],
    other_site: Callable[[web.AppRunner, ClientConnections], web.BaseSite] | None = None,
) -> None:
    """Run an application until `wait_for_stop` returns; then grant open requests `shutdown_seconds`.

    `other_site` makes one more listener, whose connections count with those of the first.
    """
    runner = web.AppRunner(await application, access_log=None, shutdown_timeout=shutdown_seconds)
    try:
        await runner.setup()
        site = BoundedSite(runner, host, port, raise_file_limit(), refuse)
        await site.start()
        if other_site is not None:
            await other_site(runner, site.connections).start()
        await wait_for_stop()
    finally:
        await runner.cleanup()
