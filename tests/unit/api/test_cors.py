"""Cross-origin requests of browsers: allowed origins alone, and never with credentials."""

import pytest

from api.cors import parse_origins
from api.v1.endpoints import ENDPOINTS

PAGE, OTHER_PAGE = "https://app.example.com", "http://localhost:3000"
PREFLIGHT = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
ALLOWED = "Access-Control-Allow-Origin"


@pytest.fixture
def settings():
    return {"CREWYARD_CORS_ORIGINS": f"{PAGE}, {OTHER_PAGE}"}


async def preflight(testbed, path, origin):
    """Ask as a browser does, without a key; return status and headers."""
    async with testbed.client.options(path, headers={"Origin": origin, **PREFLIGHT}) as response:
        return response.status, response.headers


async def read(testbed, path, origin, **more):
    """Return status and headers of a GET."""
    status, _, headers = await testbed.call("GET", path, headers={"Origin": origin}, **more)
    return status, headers


@pytest.mark.parametrize(
    "text", ["*", "a.example.com", f"{PAGE}/", f"{PAGE}/x", "https://a@b", "null", "ftp://a"]
)
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(ValueError, match="is no origin"):
        parse_origins(text)


def test_origins_are_separated_by_commas():
    assert parse_origins(f" {PAGE},http://[::1]:3000 ,") == {PAGE, "http://[::1]:3000"}
    assert parse_origins("") == frozenset()


async def test_a_page_of_an_allowed_origin_may_ask_and_read(testbed):
    status, headers = await preflight(testbed, "/v1/runs", PAGE)
    assert (status, headers[ALLOWED]) == (204, PAGE)
    assert "POST" in headers["Access-Control-Allow-Methods"]
    allowed = {name.lower() for name in headers["Access-Control-Allow-Headers"].split(", ")}
    read_by_calls = {parameter.name.lower() for endpoint in ENDPOINTS for parameter in endpoint.headers}
    assert {"authorization", "content-type", *read_by_calls} <= allowed
    assert "Access-Control-Allow-Credentials" not in headers
    # The second one is answered from the cache, and an error can be read too.
    for path, expected in (("/v1/projects", 200), ("/v1/projects", 200), ("/v1/runs/run_a", 404)):
        status, headers = await read(testbed, path, PAGE)
        assert (status, headers[ALLOWED]) == (expected, PAGE)
        assert "Access-Control-Allow-Credentials" not in headers
    assert (await read(testbed, "/v1/projects", PAGE, bearer="crw_wrong"))[1][ALLOWED] == PAGE
    _, headers = await read(testbed, "/v1/projects", OTHER_PAGE)
    assert headers[ALLOWED] == OTHER_PAGE and "Origin" in ",".join(headers.getall("Vary"))


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", f"{PAGE}.evil.example", PAGE.upper()])
async def test_other_origins_get_nothing(testbed, origin):
    status, headers = await preflight(testbed, "/v1/runs", origin)
    assert status >= 400 and ALLOWED not in headers
    status, headers = await read(testbed, "/v1/projects", origin)
    assert (status, ALLOWED in headers) == (200, False)


@pytest.mark.parametrize("path", ["/", "/healthz", "/internal/v1/runs/run-a/claim"])
async def test_only_the_api_is_open(testbed, path):
    assert ALLOWED not in (await preflight(testbed, path, PAGE))[1]


class TestWithoutTheSetting:
    """The default: no page of another origin."""

    @pytest.fixture
    def settings(self):
        return {}

    async def test_no_page_may_ask(self, testbed):
        status, headers = await preflight(testbed, "/v1/runs", PAGE)
        assert status >= 400 and ALLOWED not in headers
        assert "Origin" not in headers.get("Vary", "")
