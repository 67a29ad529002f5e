"""Every page of the console in a browser, over a local API."""

import pytest
from playwright.async_api import expect

from api.v1 import path_parameters

PAGES = {
    "#/projects": "Projects",
    "#/projects/{name}": "{name}",
    "#/projects/{name}/deployments": "{name}",
    "#/projects/{name}/runs": "{name}",
    "#/projects/{name}/usage": "{name}",
    "#/deployments/{deployments}": "{deployments}",
    "#/runs": "Runs",
    "#/runs/{runs}": "{runs}",
    "#/installation": "Health",
    "#/installation/usage": "Usage",
    "#/installation/audit": "Audit log",
    "#/settings/api-keys": "API Keys",
}


@pytest.mark.parametrize("address", PAGES)
async def test_page_shows_its_heading(testbed, console, address):
    await testbed.add_example_objects()
    names = {name.replace("-", "_"): value for name, value in path_parameters.EXAMPLES.items()}
    page = await console.show(address.format(**names))
    heading = PAGES[address].format(**names)
    await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()
