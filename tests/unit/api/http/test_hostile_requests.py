"""Random requests: every response has the error form, none is an internal error."""

import random

from yarl import URL

from api.v1.endpoints import ENDPOINTS

PIECES = [
    "run_a",
    "dep_a",
    "crew",
    "..",
    "%2e%2e",
    "%00",
    "%2F",
    "%ff",
    "%C3%BC",
    "a" * 300,
    "-1",
    "%25",
    ";",
    "+",
    "'",
    "~",
]
QUERIES = [
    "",
    "?",
    "?page",
    "?page=%00",
    "?page=1&page=1",
    "?a[]=1",
    "?%ff=1",
    "?per_page=%D9%A3",
    "?status[]=x",
    "?&&&",
]
VALUES = [
    None,
    True,
    0,
    -1,
    1e308,
    "",
    "\u0000",
    "x" * 70_000,
    [],
    [[]],
    {},
    {"": ""},
    "run_a",
    "dep_a",
    "crew",
]
ACCEPTS = [
    "",
    "*/*",
    "application/json",
    "text/event-stream",
    "a/b;q=;,",
    ";" * 50,
    "text/plain;q=0.0.1",
    ",",
]
LAST_IDS = ["", "0", "1", "-5", "9" * 15, "9" * 40, "end", "1, 2"]


def path_of(template: str, chance: random.Random) -> str:
    parts = [chance.choice(PIECES) if part.startswith("{") else part for part in template.split("/")]
    return "/".join(parts) + chance.choice(QUERIES)


def body_of(chance: random.Random, depth: int = 2):
    names = [
        "name",
        "project",
        "deployment",
        "input",
        "variables",
        "value",
        "source",
        "git",
        "size",
        "plan",
        "?",
    ]
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(VALUES)
    return {chance.choice(names): body_of(chance, depth - 1) for _ in range(chance.randint(0, 4))}


async def test_random_requests_never_fail_internally(testbed):
    """Slow: 3,000 requests."""
    await testbed.add_project("crew", activeDeployment="dep-a")
    await testbed.add_deployment("dep-a", "crew")
    raw = await testbed.add_run("run-a", "crew")
    await testbed.finish_run(raw, "Failed", error={"reason": "X", "message": "y"})
    chance = random.Random(7)
    seen: dict[int, int] = {}
    for _ in range(3000):
        endpoint = chance.choice(ENDPOINTS)
        method = (
            endpoint.method if chance.random() < 0.8 else chance.choice(["PUT", "PATCH", "OPTIONS", "TRACE"])
        )
        headers = {"Accept": chance.choice(ACCEPTS), "Last-Event-ID": chance.choice(LAST_IDS)}
        more = {"headers": {name: value for name, value in headers.items() if chance.random() < 0.4}}
        if method in ("POST", "PUT", "PATCH"):
            more["body"] = body_of(chance)
        url = URL(path_of(endpoint.path.replace(":(?s:.+)", ""), chance), encoded=True)
        status, answer, sent = await testbed.call(method, url, **more)
        seen[status] = seen.get(status, 0) + 1
        # Without an apiserver, changes of objects get a 503; no request may fail internally.
        assert status != 500 and status != 429, (method, url, more, answer)
        assert "X-Request-Id" in sent and "X-RateLimit-Limit" in sent, (method, url)
        if status >= 400:
            assert set(answer) == {"error"} and set(answer["error"]) == {"code", "message", "details"}
    assert {200, 400, 404, 405, 406, 503} <= set(seen)
