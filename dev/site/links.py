"""Links of pages, converted from repository paths to site paths. Pure. Called by `dev.site.hooks`.

In the repository a link may lead to any file; the site has only pages, so a link to another file becomes the
file's path.
"""

import posixpath
import re

PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files in the repository's root that are also pages of the site."""
_LINK = re.compile(r"(?<!!)\[([^\]\[]*)\]\(([^()\s#]+)(#[^()\s]*)?\)")


def on_site(page: str, source: str) -> str:
    """Return the text of a page with the site's links; `source` is its path in the repository."""

    def replace(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        if ":" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        inside = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
        if inside is None:
            return (
                text
                if text.startswith("`")
                else f"`{text}`"
                if text.strip("/") == path
                else f"{text} (`{path}`)"
            )
        here = posixpath.dirname(PAGES.get(source) or source.removeprefix("docs/"))
        return f"[{text}]({posixpath.relpath(inside, here or '.')}{anchor})"

    return _LINK.sub(replace, page)
