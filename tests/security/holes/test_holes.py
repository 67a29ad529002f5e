"""A guard is removed, and the test that shows it fails: a test that cannot fail shows nothing."""

import pytest

from tests.security.holes.every import HOLES
from tests.security.holes.hole import FAILED, copied, run, without_guard

CASES = [(found, test) for found in HOLES for test in found.tests]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the product, for all of them one after the other."""
    return copied(tmp_path_factory.mktemp("holes"))


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("found", "test"), CASES, ids=[f"{found.attack}: {found.name}: {test}" for found, test in CASES]
)
def test_hole_is_detected(tree, found, test):
    with without_guard(found, tree):
        code, output = run(tree, test)
    assert code == FAILED, f"{found.name}: {test} does not fail without the guard\n{output}"
