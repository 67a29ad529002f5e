"""Tests that pages name exist."""

import re

from tests.testbed.documentation import PAGES, ROOT, name_of

NAMED = re.compile(r"`(test_\w+)(?:\[[^\]`]*\])?`")


def test_named_tests_exist():
    sources = (file.read_text() for file in (ROOT / "tests").rglob("*.py"))
    defined = {
        name for source in sources for name in re.findall(r"^\s*(?:async )?def (test_\w+)", source, re.M)
    }
    files = {file.stem for file in (ROOT / "tests").rglob("test_*.py")}
    named = {(name_of(page), test) for page in PAGES for test in NAMED.findall(page.read_text())}
    assert len(named) >= 20
    assert sorted((page, test) for page, test in named if test not in defined | files) == []
