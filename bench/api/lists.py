"""F1: GET /v1/runs with 100,000 runs stored, against the same with 100: two facades, asked in turn.

Each question is asked once: what is remembered of an earlier answer is no answer here.
"""

import itertools

from bench.api.api_server import STORES, Facade, facade
from bench.api.requests_client import Connection, took
from bench.lib.finding import Finding
from bench.lib.installation import Ground
from bench.lib.statistics import percentile

FEW, MANY = 100, 100_000
ASKED = 600
PER_PAGE = 20
QUERIES = ("", "project=project-3", "status=failed", "deployment=dep_7", "project=project-3&status=succeeded")
_numbers = itertools.count(1)


def fresh() -> str:
    """An Accept that was never sent, and means the same."""
    return f"application/json, x/{next(_numbers)}"


def ask(connection: Connection, query: str, page: int = 1) -> float:
    """Milliseconds for a page."""
    return took(connection, f"/v1/runs?{query}&page={page}&per_page={PER_PAGE}".replace("?&", "?"), fresh())


def _deepest(connection: Connection) -> list[float]:
    return [ask(connection, "", MANY // PER_PAGE) for _ in range(100)]


async def _of(store: str, few: Facade, many: Facade) -> list[Finding]:
    one, other = Connection(few.url, few.key), Connection(many.url, many.key)
    for query in QUERIES * 4:
        ask(one, query), ask(other, query)
    pairs = []
    for number in range(ASKED):
        query = QUERIES[number % len(QUERIES)]
        pairs.append((ask(one, query), ask(other, query)))
    small, large = (percentile([pair[side] for pair in pairs], 0.99) for side in (0, 1))
    deepest = _deepest(other)
    one.close(), other.close()
    fact = f"p99 {large:.3g} ms with {MANY}, {small:.3g} ms with {FEW}, ratio {large / small:.2f}"
    return [
        Finding("F1", f"GET /v1/runs with {MANY} runs, {store}", "ms", pairs, peer=f"with {FEW}", fact=fact),
        Finding(
            "F1",
            f"its deepest page, {store}",
            "ms",
            values=deepest,
            fact=f"p99 {percentile(deepest, 0.99):.3g} ms",
        ),
    ]


async def measure(ground: Ground) -> list[Finding]:
    """F1, with both stores."""
    found = []
    for store in STORES:
        async with facade(store, runs=FEW) as few, facade(store, runs=MANY) as many:
            found += await _of(store, few, many)
    return found
