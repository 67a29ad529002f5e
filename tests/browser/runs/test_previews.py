"""Previews of artifacts in a browser: each kind is shown, and nothing in it is executed."""

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser import story
from tests.browser.test_accessibility import violations
from tests.testbed.chromium import CHROMIUM

HOSTILE = {
    "hostile.md": (b"# <img src=x onerror=alert(1)>\n\n[go](javascript:alert(1))\n", "text/markdown"),
    "hostile.html": (b"<h1>Tides</h1><script>alert(1)</script>", "text/html"),
    "hostile.svg": (
        b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="alert(1)">'
        b'<script>alert(2)</script><rect width="9" height="9"/></svg>',
        "image/svg+xml",
    ),
    "broken.csv": (b'a,"b\n1,2\n', "text/csv"),
    "broken.json": (b'{"a": ', "application/json"),
    "numbers.json": (b'[{"id": 12345678901234567890}]', "application/json"),
}


@pytest_asyncio.fixture(loop_scope="session")
async def run_page(page, testbed, console):
    """The page of the finished run."""
    await story.add_project(testbed)
    await story.add_run(testbed)
    for name, (content, content_type) in HOSTILE.items():
        await testbed.add_artifact(story.RUN, name, content, content_type=content_type)
    await testbed.add_artifact(story.RUN, "model.bin", b"\0", content_type="application/octet-stream")
    await console.show(f"#/runs/{story.RUN_ID}")
    await expect(page.get_by_role("listbox", name="Events")).to_contain_text("completed after 16.2 s")
    return page


async def preview(page, name):
    """Show the preview of an artifact; return its element."""
    await page.get_by_role("button", name=f"Preview {name}").click()
    shown = page.locator(".preview")
    await expect(shown.get_by_role("heading", name=name, level=2)).to_be_visible()
    return shown


async def table(shown):
    """The cells of the table of a preview, row by row."""
    return await shown.locator("tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )


async def test_markdown_is_formatted_with_its_tables(run_page):
    shown = await preview(run_page, "report.md")
    await expect(shown.get_by_role("heading", name="Tides")).to_be_visible()
    await expect(shown.locator("b")).to_have_text("Fundy")
    assert await table(shown) == [["harbour", "range"], ["Fundy", "16.3"]]
    assert await violations(run_page) == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        (
            "harbours.csv",
            [
                ["harbour", "range_m", "source, year"],
                ["Fundy", "16.3", "tables, 2026"],
                ["Severn", "15.0", "tables, 2026"],
            ],
        ),
        ("harbours.json", [["harbour", "range"], ["Fundy", "16.3"], ["Severn", "15"]]),
        ("depths.jsonl", [["depth"], ["4"], ["7"]]),
    ],
)
async def test_rows_are_a_table_and_also_text(run_page, name, rows):
    shown = await preview(run_page, name)
    assert await table(shown) == rows
    await shown.get_by_text("As text").click()
    await expect(shown.locator("pre")).to_contain_text(rows[1][0])
    assert await violations(run_page) == []


@pytest.mark.parametrize(("name", "width"), [("photo.png", 40), ("chart.svg", 40)])
async def test_picture_is_loaded(run_page, name, width):
    shown = await preview(run_page, name)
    picture = shown.get_by_role("img", name=name)
    await expect(picture).to_be_visible()
    await expect(picture).to_have_js_property("naturalWidth", width)


@pytest.mark.parametrize("browser", [CHROMIUM], indirect=True)
async def test_pdf_is_shown_by_the_browser(run_page):
    shown = await preview(run_page, "report.pdf")
    frame = shown.locator("iframe")
    await expect(frame).to_be_visible()
    page = await (await frame.element_handle()).content_frame()
    await page.wait_for_load_state()
    assert page.url.startswith("blob:")
    assert await page.evaluate("document.contentType") == "application/pdf"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("notes.txt", "Ask the harbour master."),
        ("settings.json", '{\n  "units": "m"\n}'),
        ("hostile.html", "<h1>Tides</h1><script>alert(1)</script>"),
        ("broken.json", '{"a": '),
        # A number that the browser would round is shown as it is stored.
        ("numbers.json", '[{"id": 12345678901234567890}]'),
    ],
)
async def test_other_text_is_shown_as_it_is(run_page, name, text):
    shown = await preview(run_page, name)
    await expect(shown.locator("pre")).to_have_text(text)


@pytest.mark.parametrize("name", ["hostile.md", "hostile.svg", "hostile.html", "broken.csv"])
async def test_nothing_in_a_preview_is_executed(run_page, name):
    dialogs = []
    run_page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    shown = await preview(run_page, name)
    await run_page.wait_for_load_state("networkidle")
    assert await shown.locator("script, a, [onerror], [onload]").count() == 0
    assert dialogs == []


async def test_other_files_are_only_downloaded(run_page):
    await expect(run_page.get_by_role("button", name="Preview model.bin")).to_have_count(0)
    async with run_page.expect_download() as started:
        await run_page.get_by_role("button", name="Download model.bin").click()
    download = await started.value
    assert download.suggested_filename == "model.bin"
    assert (await download.path()).read_bytes() == b"\0"


async def test_long_text_is_cut_and_says_so(testbed, run_page, console):
    long = b"x" * 1023 + b"\n"
    await testbed.add_artifact(story.RUN, "long.log", long * 2049, content_type="text/plain")
    await run_page.reload()
    shown = await preview(run_page, "long.log")
    await expect(shown).to_contain_text("The first 2 MiB; download it for all.")
    assert len(await shown.locator("pre").text_content()) == 2048 * 1024


async def test_more_than_a_page_of_artifacts_is_shown_on_request(testbed, run_page):
    downloads = run_page.get_by_role("button", name="Download")
    await expect(downloads.first).to_be_visible()
    before = await downloads.count()
    for number in range(100):
        await testbed.add_artifact(story.RUN, f"part-{number:03}.txt", b"1", content_type="text/plain")
    await run_page.reload()
    await expect(downloads).to_have_count(100)
    await run_page.get_by_role("button", name="Show more").click()
    await expect(downloads).to_have_count(100 + before)
    await expect(run_page.get_by_role("button", name="Show more")).to_have_count(0)
