"""Make targets in pages exist in the Makefile, and every target is documented."""

import re

from tests.testbed.documentation import PAGES, ROOT, name_of

MAKEFILE = (ROOT / "Makefile").read_text()
MADE = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
TYPED = re.compile(r"(?:`|^|&& )make (?:-s )?([a-z0-9-]+)", re.MULTILINE)


def test_make_targets_in_pages_exist():
    typed = {(name_of(page), target) for page in PAGES for target in TYPED.findall(page.read_text())}
    assert sorted((page, target) for page, target in typed if target not in MADE) == []


def test_every_target_is_described():
    helped = set(re.findall(r"^([a-z0-9-]+):.*## \S", MAKEFILE, re.MULTILINE))
    pages = "".join(page.read_text() for page in PAGES)
    assert sorted(target for target in MADE if target not in helped and f"`make {target}`" not in pages) == []
