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
            assert (ROOT / test.partition("::")[0]).exists(), test
