"""F2's peer: a minimal aiohttp server with one handler that returns a page of runs as JSON.

`python -m bench.api.bare_server PORT`; started by `bench.api.requests`.
"""

import sys

from aiohttp import web

PAGE = {
    "data": [
        {
            "id": f"run_01kzzzzzzzzzzzzzzzzzzzzz{number:02}",
            "deployment_id": "dep_01kzzzzzzzzzzzzzzzzzzzzzzz",
            "project": "shop",
            "status": "succeeded",
            "created_at": "2026-11-21T10:00:00Z",
            "completed_at": "2026-11-21T10:00:05Z",
            "duration_ms": 5000,
        }
        for number in range(20)
    ],
    "pagination": {"total": 100_000, "page": 1, "per_page": 20, "has_more": True},
}


async def page(request: web.Request) -> web.StreamResponse:
    """Return the page, encoded for each request."""
    return web.json_response(PAGE)


def main() -> None:
    """Serve until terminated."""
    application = web.Application()
    application.router.add_get("/v1/runs", page)
    web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
