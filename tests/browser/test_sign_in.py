"""Sign-in by a real OpenID provider, Dex, in a browser."""

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser import story
from tests.browser.test_accessibility import violations
from tests.testbed import dex as provider
from tests.testbed.ports import free_port

GROUPS = {"anna": ["operators"], "ben": ["tides-team", "readers"], "cleo": ["guests"]}


class RealClock(list):
    """A clock of the API that follows the real time, as the provider's tokens do."""

    def __getitem__(self, index):
        return datetime.now(UTC)


@pytest.fixture
def clock():
    return RealClock([None])


@pytest.fixture(scope="module")
def dex() -> Iterator[tuple[provider.DexServer, int]]:
    """The provider, and the port of the API whose console it redirects to."""
    argv0, port = provider.program(), free_port()
    if argv0 is None:
        pytest.skip(provider.MISSING)
    server = provider.DexServer(argv0, f"http://127.0.0.1:{port}/console/", GROUPS)
    yield server, port
    server.stop()


@pytest.fixture
def settings(dex):
    server, port = dex
    groups = [
        {"group": "operators", "scopes": ["admin"]},
        {"group": "readers", "scopes": ["read"]},
        {"group": "tides-team", "scopes": ["run"], "projects": [story.PROJECT]},
    ]
    found = {"issuer": server.issuer, "client_id": provider.CLIENT_ID, "groups": groups}
    return {
        "CREWYARD_PUBLIC_URL": f"http://127.0.0.1:{port}",
        "CREWYARD_SIGN_IN": json.dumps(found),
        "CREWYARD_SIGN_IN_SECRET": provider.CLIENT_SECRET,
    }


@pytest_asyncio.fixture(loop_scope="session")
async def start(testbed, page, dex):
    """Open the console and go to the provider's form; return the URL that the browser was sent to."""
    await story.add_project(testbed)

    async def start(name: str, view: str = "#/runs") -> str:
        await page.goto(f"http://127.0.0.1:{dex[1]}/console/{view}")
        await page.get_by_role("button", name="Sign in with 127.0.0.1").click()
        await page.locator("#login").fill(name)
        sent = page.url
        await page.locator("#password").fill(provider.PASSWORD)
        await page.locator("#submit-login").click()
        return sent

    return start


async def test_an_operator_signs_in_and_out(page, start):
    await start("anna", "#/runs")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    await expect(page.get_by_text("user:anna@example.com")).to_be_visible()
    await expect(page.get_by_role("link", name="Settings")).to_be_visible()
    # Neither the code nor the token stays in the address, and the console sets no cookie.
    assert urlsplit(page.url).query == ""
    assert [cookie for cookie in await page.context.cookies() if "/console" in cookie["path"]] == []
    await page.reload()
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("button", name="Sign in with 127.0.0.1")).to_be_visible()
    assert await page.evaluate("sessionStorage.length") == 0
    assert await violations(page) == []


async def test_groups_of_a_project_become_its_scopes(testbed, page, start):
    await testbed.add_project("other")
    await start("ben")
    await expect(page.get_by_text("user:ben@example.com")).to_be_visible()
    await expect(page.get_by_role("link", name="Settings")).to_have_count(0)
    token = await page.evaluate("sessionStorage.getItem('crewyard.key')")
    found = (await testbed.get("/v1/whoami", bearer=token))["data"]
    assert found["scopes"] == ["read"]
    assert found["projects"] == [{"project": story.PROJECT, "scopes": ["read", "run"]}]
    statuses = {}
    for project in (story.PROJECT, "other"):
        body = {"cron": "0 7 * * *"}
        path = f"/v1/projects/{project}/schedules/daily"
        statuses[project] = (await testbed.call("PUT", path, body, bearer=token))[0]
    # 503 without a kube-apiserver: the check of the scope has passed.
    assert statuses == {story.PROJECT: 503, "other": 403}


async def test_a_user_without_a_group_is_refused(page, start):
    await start("cleo")
    await expect(page.get_by_role("alert")).to_contain_text("none of the groups")
    assert await page.evaluate("sessionStorage.getItem('crewyard.key')") is None


async def test_a_code_that_this_tab_did_not_ask_for_is_refused(testbed, page, dex):
    await page.goto(f"http://127.0.0.1:{dex[1]}/console/?code=of-somebody-else&state=guessed")
    await expect(page.get_by_role("alert")).to_contain_text("did not start the sign-in")
    assert urlsplit(page.url).query == ""


async def test_the_provider_gets_a_challenge_and_no_secret(page, start, dex):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    await start("anna")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    sent = next(url for url in requests if urlsplit(url).path == "/dex/auth")
    query = {name: values[0] for name, values in parse_qs(urlsplit(sent).query).items()}
    assert query["code_challenge_method"] == "S256" and len(query["code_challenge"]) == 43
    assert query["response_type"] == "code" and query["state"] != query["nonce"]
    assert not [url for url in requests if provider.CLIENT_SECRET in url]


async def post(testbed, body, **more):
    async with testbed.client.post("/console/sign-in", **more or {"json": body}) as answer:
        return answer.status, await answer.json()


async def test_codes_are_used_once_and_by_their_verifier(testbed, page, start):
    bodies = []
    page.on(
        "request",
        lambda request: (
            bodies.append(request.post_data_json)
            if request.method == "POST" and request.url.endswith("/console/sign-in")
            else None
        ),
    )
    await start("anna")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    [body] = bodies
    assert (await post(testbed, body))[0] == 400
    assert (await post(testbed, {**body, "code": "guessed"}))[0] == 400


@pytest.mark.usefixtures("stopped_windows")
async def test_forms_and_large_bodies_are_refused(testbed):
    assert (await post(testbed, None, data={"code": "x", "code_verifier": "x", "nonce": "x"}))[0] == 415
    assert (await post(testbed, {"code": "x" * 20_000}))[0] == 413
    assert (await post(testbed, {"code": "x", "code_verifier": "x"}))[0] == 400
    packed = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert (await post(testbed, None, data=gzip.compress(b"{}"), headers=packed))[0] == 415
    statuses = [(await post(testbed, {}))[0] for _ in range(31)]
    assert statuses[-1] == 429


async def test_a_token_of_another_client_is_no_key(testbed, page, start):
    """Reject forged tokens of an identity provider.

    Slow: starts the identity provider and a browser.
    """
    await start("anna")
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    token = await page.evaluate("sessionStorage.getItem('crewyard.key')")
    header, claims, signature = token.split(".")
    assert (await testbed.call("GET", "/v1/runs", bearer=token))[0] == 200
    for forged in (f"{header}.{claims}.{signature[:-4]}AAAA", f"{header}.{claims}x.{signature}"):
        assert (await testbed.call("GET", "/v1/runs", bearer=forged))[0] == 401
