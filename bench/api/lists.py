"""F1: GET /v1/runs with 100,000 stored runs, against the same with 100: two API servers, alternating.

Each request is unique, so the response cache never answers.
"""

import itertools

from bench.api.api_server import STORES, ApiServer, api_server
from bench.api.requests_client import HttpConnection, request_milliseconds
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.lib.statistics import percentile

FEW_RUNS, MANY_RUNS = 100, 100_000
REQUEST_COUNT = 600
PER_PAGE = 20
QUERIES = ("", "project=project-3", "status=failed", "deployment=dep_7", "project=project-3&status=succeeded")
_numbers = itertools.count(1)


def unique_accept() -> str:
    """Return an Accept header that was never sent before and means the same."""
    return f"application/json, x/{next(_numbers)}"


def page_milliseconds(connection: HttpConnection, query: str, page: int = 1) -> float:
    """Return the milliseconds of one page."""
    return request_milliseconds(
        connection, f"/v1/runs?{query}&page={page}&per_page={PER_PAGE}".replace("?&", "?"), unique_accept()
    )


def _deepest_page_times(connection: HttpConnection) -> list[float]:
    return [page_milliseconds(connection, "", MANY_RUNS // PER_PAGE) for _ in range(100)]


async def _compare_stores(store: str, few: ApiServer, many: ApiServer) -> list[Finding]:
    few_connection, many_connection = HttpConnection(few.url, few.key), HttpConnection(many.url, many.key)
    for query in QUERIES * 4:
        page_milliseconds(few_connection, query), page_milliseconds(many_connection, query)
    pairs = []
    for number in range(REQUEST_COUNT):
        query = QUERIES[number % len(QUERIES)]
        pairs.append((page_milliseconds(few_connection, query), page_milliseconds(many_connection, query)))
    few_p99, many_p99 = (percentile([pair[side] for pair in pairs], 0.99) for side in (0, 1))
    deepest_times = _deepest_page_times(many_connection)
    few_connection.close()
    many_connection.close()
    summary = (
        f"p99 {many_p99:.3g} ms with {MANY_RUNS}, {few_p99:.3g} ms with {FEW_RUNS}, "
        f"ratio {many_p99 / few_p99:.2f}"
    )
    return [
        Finding(
            "F1",
            f"GET /v1/runs with {MANY_RUNS} runs, {store}",
            "ms",
            pairs,
            peer=f"with {FEW_RUNS}",
            fact=summary,
        ),
        Finding(
            "F1",
            f"its deepest page, {store}",
            "ms",
            values=deepest_times,
            fact=f"p99 {percentile(deepest_times, 0.99):.3g} ms",
        ),
    ]


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure F1 with both stores."""
    findings = []
    for store in STORES:
        async with api_server(store, runs=FEW_RUNS) as few, api_server(store, runs=MANY_RUNS) as many:
            findings += await _compare_stores(store, few, many)
    return findings
