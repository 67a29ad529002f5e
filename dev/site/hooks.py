"""Hooks of the site generator (mkdocs.yml). Called by mkdocs: `make docs`."""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# The generator loads this file by path, so the repository's packages must be added to sys.path.
sys.path[:0] = [path for path in (str(ROOT), str(ROOT / "client")) if path not in sys.path]

from mkdocs.structure.files import File, Files  # noqa: E402

from dev.site import links, pictures, sections  # noqa: E402


def on_config(config: Any) -> Any:
    """Add the pages of a directory to the navigation where it names the directory."""
    config.nav = _expand(config.nav)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from the repository's root."""
    for name, page in links.PAGES.items():
        if (ROOT / name).exists():
            files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Insert generated sections, and convert links and pictures for the site."""
    names = {page_name: name for name, page_name in links.PAGES.items()}
    source = names.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    text = links.on_site(sections.fill(markdown), source)
    return pictures.IMAGE.sub(
        lambda match: pictures.inline((ROOT / "docs/pictures" / match[2]).read_text(), match[1]), text
    )


def _expand(nav: Any) -> Any:
    if isinstance(nav, dict):
        return {title: _expand(below) for title, below in nav.items()}
    if not isinstance(nav, list):
        return nav
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/"):
            pages = sorted(
                path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs" / entry).glob("*.md")
            )
            entries += sorted(pages, key=lambda name: (not name.endswith("/index.md"), name))
        elif not _missing(entry):
            entries.append(_expand(entry))
    return entries


def _missing(entry: Any) -> bool:
    """Return whether the entry names a page that does not exist (yet) in docs/."""
    names = [name for name in entry.values() if isinstance(name, str)] if isinstance(entry, dict) else []
    return any(
        not (ROOT / "docs" / name).exists()
        for name in names
        if name not in links.PAGES.values() and name[-1] != "/"
    )
