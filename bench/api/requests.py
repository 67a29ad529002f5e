"""F2: requests a second with key, rate limit, list and log line, against a bare handler; F3: who asks the
apiserver while 10,000 GETs are answered.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from bench.api.api_server import facade
from bench.api.lists import fresh
from bench.api.requests_client import rate
from bench.api.requests_proxy import counting
from bench.lib.finding import Finding
from bench.lib.installation import Ground
from tests.testbed.ports import free_port

PAIRS, SECONDS = 9, 1.5
STORED = 100_000
GETS = 10_000
BACKGROUND = ("watch=true", "limit=500")
"""What the facade asks by itself: its watches, and the lists that they begin with."""


def _same(number: int) -> tuple[str, str]:
    return "/v1/runs?per_page=20", "application/json"


def _new(number: int) -> tuple[str, str]:
    return "/v1/runs?per_page=20", fresh()


async def rates(ground: Ground) -> list[Finding]:
    """F2: a list that is polled while nothing changes, and one that must be made anew each time."""
    port = free_port()
    bare = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.api.requests_bare", str(port))
    pairs: dict[str, list[tuple[float, float]]] = {"nothing changed": [], "made anew": []}
    try:
        async with facade(runs=STORED) as ours:
            peer = f"http://127.0.0.1:{port}"
            for _ in range(PAIRS + 1):
                theirs = await asyncio.to_thread(rate, peer, "", SECONDS, _same)
                for name, path in (("nothing changed", _same), ("made anew", _new)):
                    own = await asyncio.to_thread(rate, ours.url, ours.key, SECONDS, path)
                    pairs[name].append((theirs, own))
    finally:
        bare.terminate()
        await bare.wait()
    return [
        Finding("F2", f"GET /v1/runs of {STORED}, {name}", "requests/s", found, peer="bare aiohttp handler")
        for name, found in pairs.items()
    ]


async def asked(ground: Ground) -> list[Finding]:
    """F3: lists and single objects of every kind, in turn; a run is there that waits in its queue."""
    with tempfile.TemporaryDirectory() as directory:
        async with (
            counting(Path(directory)) as (proxy, kubeconfig),
            facade(kubeconfig=kubeconfig) as ours,
        ):
            deployment = (await ours.project("shop"))[0].replace("-", "_", 1)
            run = (await ours.call("POST", "/v1/runs", {"deployment": deployment}))["id"]
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
            for number in range(GETS):
                accept = {"Accept": f"{fresh()}, */*"}
                async with ours.session.get(paths[number % len(paths)], headers=accept) as answer:
                    if answer.status != 200:
                        raise RuntimeError(f"{answer.status} {await answer.text()}")
            own = [one for one in proxy.seen if any(word in one[1] for word in BACKGROUND)]
            others = sorted({one for one in proxy.seen if one not in own})
    fact = f"{len(proxy.seen) - len(own)} during {GETS} GETs, besides {len(own)} lists and watches of its own"
    return [Finding("F3", "requests to the apiserver", "", fact=f"{fact} {others or ''}".rstrip())]
