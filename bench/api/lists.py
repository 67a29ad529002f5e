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
LABEL_QUERIES = (
    "label=team%3Dt3",
    "label=stage%3Dtest",
    "label=stage%3Dtest,team%3Dt3&status=failed",
    "label=stage%3Dtest&project=project-3",
    "label=team%3Dt3&created_after=2026-01-01T00:00:00Z",
)
"""A label of a seventh of the runs, one of all runs, and each with other filters."""
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


def _compare_queries(
    few: HttpConnection, many: HttpConnection, queries: tuple[str, ...]
) -> tuple[list[tuple[float, float]], str]:
    """Return the milliseconds of both servers for each request, and a summary of them."""
    for query in queries * 4:
        page_milliseconds(few, query), page_milliseconds(many, query)
    pairs = []
    for number in range(REQUEST_COUNT):
        query = queries[number % len(queries)]
        pairs.append((page_milliseconds(few, query), page_milliseconds(many, query)))
    few_p99, many_p99 = (percentile([pair[side] for pair in pairs], 0.99) for side in (0, 1))
    summary = (
        f"p99 {many_p99:.3g} ms with {MANY_RUNS}, {few_p99:.3g} ms with {FEW_RUNS}, "
        f"ratio {many_p99 / few_p99:.2f}"
    )
    return pairs, summary


async def _compare_stores(store: str, few: ApiServer, many: ApiServer) -> list[Finding]:
    few_connection, many_connection = HttpConnection(few.url, few.key), HttpConnection(many.url, many.key)
    pairs, summary = _compare_queries(few_connection, many_connection, QUERIES)
    label_pairs, label_summary = _compare_queries(few_connection, many_connection, LABEL_QUERIES)
    deepest_times = _deepest_page_times(many_connection)
    few_connection.close()
    many_connection.close()
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
            f"by label, with {MANY_RUNS} runs, {store}",
            "ms",
            label_pairs,
            peer=f"with {FEW_RUNS}",
            fact=label_summary,
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
