"""Pages whose files or data do not arrive at once, as when a laptop changes its network, in a browser."""

import pytest
from playwright.async_api import expect

from tests.browser import story


async def lose(page, pattern, times):
    """Let the first requests of a URL fail without an answer; return the list of all of them."""
    seen = []

    async def handle(route):
        seen.append(route.request.url)
        await (route.abort() if len(seen) <= times else route.continue_())

    await page.route(pattern, handle)
    return seen


async def count_reloads(page, count):
    """Let the page think that it has been reloaded so many times."""
    await page.add_init_script(f"sessionStorage['loaded-again'] ??= '{count}'")


@pytest.mark.parametrize("times", [1, 4])
async def test_page_with_a_missing_file_reloads(testbed, page, times):
    requests = await lose(page, "**/dom.js", times)
    await page.goto(str(testbed.client.make_url("/console/")))
    if times > 3:
        await expect(page.get_by_role("alert")).to_contain_text("It is loaded again in some seconds.")
    await expect(page.get_by_label("API key")).to_be_visible()
    await expect(page.get_by_role("alert")).to_have_count(0)
    # More if the network changes meanwhile.
    assert len(requests) > times
    assert await page.evaluate("() => sessionStorage.length") == 0


async def test_error_stays_after_the_last_reload(testbed, page):
    await count_reloads(page, 8)
    requests = await lose(page, "**/dom.js", 1)
    await page.goto(str(testbed.client.make_url("/console/")))
    await expect(page.get_by_role("alert")).to_contain_text("Reload it; if that does not help")
    assert len(requests) == 1
    await page.reload()
    await expect(page.get_by_label("API key")).to_be_visible()


async def test_page_reloads_when_the_network_is_back(testbed, page):
    await count_reloads(page, 8)
    await lose(page, "**/dom.js", 1)
    await page.goto(str(testbed.client.make_url("/console/")))
    await expect(page.get_by_role("alert")).to_be_visible()
    await page.evaluate('() => dispatchEvent(new Event("online"))')
    await expect(page.get_by_label("API key")).to_be_visible()


@pytest.mark.parametrize("times", [2, 3])
async def test_lost_answers_are_asked_for_again(testbed, console, times):
    await story.add_project(testbed)
    requests = await lose(console.page, "**/v1/projects?*", times)
    page = await console.show("#/projects?page=1")
    if times == 2:
        await expect(page.get_by_role("link", name=story.PROJECT, exact=True)).to_be_visible()
    else:
        await expect(page.get_by_role("alert")).to_contain_text("The service is unreachable.")
    assert len(requests) == 3
    if times == 3:
        await page.evaluate('() => dispatchEvent(new Event("online"))')
        await expect(page.get_by_role("link", name=story.PROJECT, exact=True)).to_be_visible()


async def test_lost_change_names_the_service(testbed, console):
    await story.add_project(testbed)
    await story.add_run(testbed, phase=None)
    page = await console.show(f"#/runs/{story.RUN_ID}")
    await lose(page, "**/cancel", 1)
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.locator("#notification")).to_have_text("The service is unreachable.")


async def test_answer_of_a_proxy_is_said(testbed, console):
    body = "<html>Bad gateway</html>"
    await console.page.route("**/v1/runs?*", lambda route: route.fulfill(status=502, body=body))
    page = await console.show("#/runs")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("The service or a proxy before it is not ready: it returned 502.")
    await expect(alert).not_to_contain_text("unknown")


async def test_key_that_no_header_can_carry_is_invalid(testbed, page):
    await page.goto(str(testbed.client.make_url("/console/")))
    await page.get_by_label("API key").fill("crw_ключ")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("alert")).to_contain_text("Invalid API key.")


async def test_ended_session_is_said(testbed, console):
    await story.add_project(testbed)
    page = await console.show("#/projects")
    await page.evaluate("() => { sessionStorage['crewyard.key'] += 'x'; }")
    await console.show("#/runs")
    await expect(page.get_by_label("API key")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text("Sign in again")
