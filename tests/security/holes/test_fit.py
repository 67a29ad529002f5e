"""The holes match the current code. A change of that code fails here first."""

import yaml

from tests.security.holes.every import HOLES
from tests.security.holes.hole import ROOT, opened


def test_every_hole_matches_the_current_code():
    assert len({found.name for found in HOLES}) == len(HOLES) >= 60
    for found in HOLES:
        for path, text in opened(found, ROOT).items():
            if path.suffix == ".py":
                compile(text, path, "exec")
            else:
                assert list(yaml.safe_load_all(text)), path
        for test in found.tests:
            assert _is_test(test), f"{found.name}: the test {test} does not exist"


def _is_test(test: str) -> bool:
    """Return whether a file, and the test in it, exist; a test is often moved with its subject."""
    file, _, name = test.partition("::")
    path = ROOT / file
    function = name.rpartition("::")[2].partition("[")[0]
    return path.exists() and (not name or f"def {function}(" in path.read_text())


def test_a_missing_test_is_noticed():
    here = "tests/security/holes/test_fit.py"
    assert _is_test(here) and _is_test(f"{here}::test_a_missing_test_is_noticed[x]")
    assert not _is_test(f"{here}::test_that_was_moved") and not _is_test("tests/unit/test_none.py")
