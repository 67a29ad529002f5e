"""F2: requests per second, and F3: requests to the apiserver during 10,000 GETs.

F2 includes key check, rate limit, list and log line, and compares with a bare handler.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from bench.api.api_server import api_server
from bench.api.lists import unique_accept
from bench.api.requests_client import rate
from bench.api.requests_proxy import counting_proxy
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from tests.testbed.ports import free_port

PAIR_COUNT, ROUND_SECONDS = 9, 1.5
STORED_RUNS = 100_000
GET_COUNT = 10_000
BACKGROUND_QUERIES = ("watch=true", "limit=500")
"""Requests that the API server makes anyway: its watches and their initial lists."""


def _repeated_request(number: int) -> tuple[str, str]:
    return "/v1/runs?per_page=20", "application/json"


def _unique_request(number: int) -> tuple[str, str]:
    return "/v1/runs?per_page=20", unique_accept()


async def request_rates(installation: MeasuredInstallation) -> list[Finding]:
    """Measure F2: a list polled without changes, and one that is computed for each request."""
    port = free_port()
    bare = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.api.bare_server", str(port))
    pairs: dict[str, list[tuple[float, float]]] = {"nothing changed": [], "made each time": []}
    try:
        async with api_server(runs=STORED_RUNS) as server:
            peer = f"http://127.0.0.1:{port}"
            for _ in range(PAIR_COUNT + 1):
                peer_rate = await asyncio.to_thread(rate, peer, "", ROUND_SECONDS, _repeated_request)
                for name, path in (
                    ("nothing changed", _repeated_request),
                    ("made each time", _unique_request),
                ):
                    our_rate = await asyncio.to_thread(rate, server.url, server.key, ROUND_SECONDS, path)
                    pairs[name].append((peer_rate, our_rate))
    finally:
        bare.terminate()
        await bare.wait()
    return [
        Finding(
            "F2",
            f"GET /v1/runs of {STORED_RUNS}, {name}",
            "requests/s",
            rate_pairs,
            peer="bare aiohttp handler",
        )
        for name, rate_pairs in pairs.items()
    ]


async def apiserver_requests(installation: MeasuredInstallation) -> list[Finding]:
    """Measure F3: lists and single objects of every kind, in turn, with one pending run."""
    with tempfile.TemporaryDirectory() as directory:
        async with (
            counting_proxy(Path(directory)) as (proxy, kubeconfig),
            api_server(kubeconfig=kubeconfig) as server,
        ):
            deployment = (await server.project("shop"))[0].replace("-", "_", 1)
            run = (await server.call("POST", "/v1/runs", {"deployment": deployment}))["id"]
            paths = (
                "/v1/runs",
                "/v1/runs?project=shop&status=pending",
                f"/v1/runs/{run}",
                f"/v1/runs/{run}/artifacts",
                f"/v1/runs/{run}/logs",
                "/v1/deployments?project=shop",
                f"/v1/deployments/{deployment}",
                "/v1/projects",
                "/v1/projects/shop",
                "/v1/projects/shop/usage",
            )
            await asyncio.sleep(2)
            proxy.seen.clear()
            for number in range(GET_COUNT):
                accept = {"Accept": f"{unique_accept()}, */*"}
                async with server.session.get(paths[number % len(paths)], headers=accept) as response:
                    if response.status != 200:
                        raise RuntimeError(f"{response.status} {await response.text()}")
            background = [
                request for request in proxy.seen if any(query in request[1] for query in BACKGROUND_QUERIES)
            ]
            unexpected = sorted({request for request in proxy.seen if request not in background})
    foreground = len(proxy.seen) - len(background)
    fact = f"{foreground} during {GET_COUNT} GETs, besides {len(background)} lists and watches of its own"
    return [Finding("F3", "requests to the apiserver", "", fact=f"{fact} {unexpected or ''}".rstrip())]
