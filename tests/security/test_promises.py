"""The page of promises names tests that are there, and the targets that are fuzzed."""

import re
from pathlib import Path

from tests.fuzz.every import TARGETS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/security.md").read_text()


def test_every_path_on_the_page_exists():
    named = set(re.findall(r"`((?:tests|manifests|dev|docs)/[A-Za-z0-9_./-]+)`", PAGE))
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_page_has_the_number_of_fuzz_targets():
    assert f"fuzzed: {len(TARGETS)} targets" in PAGE


def test_make_targets_on_the_page_exist():
    made = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    typed = set(re.findall(r"`make ([a-z0-9-]+)", PAGE))
    assert typed >= {"sbom", "audit", "fuzz-parsers"} and typed - made == set()
