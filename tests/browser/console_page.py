"""The console's page in a test: sign in, and go to a view."""

from dataclasses import dataclass

from playwright.async_api import Page, expect


@dataclass
class ConsolePage:
    """A browser's page with the console at `url`."""

    page: Page
    url: str
    key: str

    async def sign_in(self, view: str = "") -> None:
        """Open the console and sign in."""
        await self.page.goto(self.url + view)
        await self.page.get_by_label("API key").fill(self.key)
        await self.page.get_by_role("button", name="Sign in").click()
        await expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    async def show(self, view: str) -> Page:
        """Show a view by its hash, such as `#/runs`; return once it has loaded."""
        await self.page.goto(self.url + view)
        await expect(self.page.locator("main [aria-busy]")).to_have_count(0)
        return self.page
