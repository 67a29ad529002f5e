"""The variables of a project in a browser, over an apiserver stub that keeps their Secret."""

import base64
import dataclasses

import pytest
import pytest_asyncio
from aiohttp import web
from playwright.async_api import expect

from api.services import SERVICES
from tests.browser import story
from tests.browser.test_accessibility import COLORS, OVERFLOWS, violations
from tests.testbed.apiserver import serving

SECRETS = "/api/v1/namespaces/crews/secrets"


@pytest_asyncio.fixture(loop_scope="session")
async def stored(testbed, monkeypatch):
    """Return the Secrets by name that the API writes."""
    secrets = {}

    async def read(request):
        found = secrets.get(request.match_info["name"])
        if found is None:
            return web.json_response({"kind": "Status", "reason": "NotFound", "code": 404}, status=404)
        return web.json_response(found)

    async def create(request):
        body = await request.json()
        body["metadata"] |= {"uid": "uid-secret", "resourceVersion": "1"}
        secrets[body["metadata"]["name"]] = body
        return web.json_response(body, status=201)

    async def patch(request):
        found, changed = secrets[request.match_info["name"]], await request.json()
        for part in ("data", "metadata"):
            merge(found.setdefault(part, {}), changed.get(part) or {})
        return web.json_response(found)

    await story.add_project(testbed)
    one = f"{SECRETS}/{{name}}"
    async with serving([web.get(one, read), web.post(SECRETS, create), web.patch(one, patch)]) as kube:
        app = testbed.client.server.app
        monkeypatch.setitem(app._state, SERVICES, dataclasses.replace(app[SERVICES], kube=kube))
        yield secrets


def merge(target, changed):
    """Merge a JSON merge patch."""
    for name, value in changed.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            merge(target.setdefault(name, {}), value)
        else:
            target[name] = value


async def test_variable_is_set_replaced_and_removed(stored, console):
    page = await console.show(f"#/projects/{story.PROJECT}/variables")
    await expect(page.get_by_text("No variables.")).to_be_visible()
    for value in ("first-value", "second-value"):
        await page.get_by_label("Name").fill("MODEL_KEY")
        await page.get_by_label("Value").fill(value)
        async with page.expect_response(lambda response: response.request.method == "PUT"):
            await page.get_by_role("button", name="Set variable").click()
        await expect(page.get_by_text("MODEL_KEY is set.")).to_be_visible()
        row = page.get_by_role("row").filter(has_text="MODEL_KEY")
        await expect(row).to_have_count(1)
        [secret] = stored.values()
        assert base64.b64decode(secret["data"]["MODEL_KEY"]).decode() == value
        assert value not in await page.content()
    asked = []

    async def answer(dialog):
        asked.append(dialog.message)
        await (dialog.accept() if len(asked) > 1 else dialog.dismiss())

    page.on("dialog", answer)
    await page.get_by_role("button", name="Remove MODEL_KEY").click()
    await expect(row).to_have_count(1)
    await page.get_by_role("button", name="Remove MODEL_KEY").click()
    await expect(page.get_by_text("No variables.")).to_be_visible()
    assert asked == ["Remove MODEL_KEY?"] * 2
    assert "MODEL_KEY" not in secret["data"]


PEM = "-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(("pasted", "value"), [(PEM, PEM), ("sk-one\n", "sk-one"), ("a\nb", "a\nb")])
async def test_pasted_value_keeps_its_lines(stored, console, pasted, value):
    page = await console.show(f"#/projects/{story.PROJECT}/variables")
    await page.get_by_label("Name").fill("MODEL_KEY")
    await page.get_by_label("Value").focus()
    await page.keyboard.insert_text(pasted)
    # Enter sets the variable; it is not a part of the value.
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("cell", name="MODEL_KEY", exact=True)).to_be_visible()
    [secret] = stored.values()
    assert base64.b64decode(secret["data"]["MODEL_KEY"]).decode() == value


async def test_page_breaks_no_rule_and_fits_a_phone(testbed, stored, console):
    """Slow: axe-core checks the whole page twice."""
    body = {"value": "x"}
    assert (await testbed.call("PUT", f"/v1/projects/{story.PROJECT}/env/MODEL_KEY", body))[0] == 200
    page = await console.show(f"#/projects/{story.PROJECT}/variables")
    await expect(page.get_by_role("cell", name="MODEL_KEY", exact=True)).to_be_visible()
    assert await violations(page) == []
    await page.emulate_media(color_scheme="dark")
    assert await violations(page, COLORS) == []
    await page.set_viewport_size({"width": 360, "height": 700})
    assert not await page.evaluate(OVERFLOWS)


async def test_a_read_key_sees_names_without_a_form(stored, testbed, console):
    page = await console.show(f"#/projects/{story.PROJECT}/variables")
    await page.get_by_label("Name").fill("MODEL_KEY")
    await page.get_by_label("Value").fill("value")
    await page.get_by_role("button", name="Set variable").click()
    await expect(page.get_by_role("button", name="Remove MODEL_KEY")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    console.key = testbed.create_key("read")
    await console.sign_in()
    await console.show(f"#/projects/{story.PROJECT}/variables")
    await expect(page.get_by_role("row").filter(has_text="MODEL_KEY")).to_be_visible()
    await expect(page.get_by_role("button", name="Remove MODEL_KEY")).to_have_count(0)
    await expect(page.get_by_role("button", name="Set variable")).to_have_count(0)
