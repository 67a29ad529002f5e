"""Every reason, setting and make target is documented."""

import re
from pathlib import Path

import pytest

from crds.reasons import BuildReason, RunReason

ROOT = Path(__file__).parents[3]


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


@pytest.mark.parametrize(("name", "reasons"), [("deployment.md", BuildReason), ("run.md", RunReason)])
def test_every_reason_is_explained(name, reasons):
    text = page(name)
    assert [reason for reason in reasons if f"`{reason}`" not in text] == []


def test_every_setting_is_listed():
    settings = set()
    for file in ("api/config.py", "api/auth/settings.py", "controller/config.py"):
        settings |= set(re.findall(r"CREWYARD_[A-Z_]+", (ROOT / file).read_text()))
    text = page("settings.md")
    assert {name for name in settings if f"`{name}`" not in text} == set()


def test_links_between_pages_exist():
    missing = []
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            if not target.startswith("http") and not (path.parent / target).exists():
                missing.append(f"{path.name}: {target}")
    assert missing == []


def test_make_targets_in_the_readme_exist():
    made = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = set(re.findall(r"\bmake (?:-s )?([a-z0-9-]+)", (ROOT / "README.md").read_text()))
    assert typed - made - {"up"} == set() and "demo" in typed


LISTS = [("README.md", r"^\| .*$"), ("mkdocs.yml", r"^ {6,}- .*\.md$")]


@pytest.mark.parametrize(("name", "pattern"), LISTS)
def test_no_page_is_listed_twice(name, pattern):
    rows = re.findall(pattern, (ROOT / name).read_text(), re.MULTILINE)
    pages = [target for row in rows for target in re.findall(r"[\w/.-]+\.md", row)]
    assert len(pages) > 20 and sorted(pages) == sorted(set(pages))
