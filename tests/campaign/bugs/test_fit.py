"""The seeded bugs match the current code. A change of that code fails here first."""

import pytest

from tests.campaign.bugs.bug import Bug, Edit, changed
from tests.campaign.bugs.catalogue import BUGS, QUICK
from tests.campaign.testbed import ROOT


def test_thirteen_bugs_match_the_current_code():
    assert len({bug.name for bug in BUGS}) == len(BUGS) == 13
    assert set(QUICK) <= {bug.name for bug in BUGS}
    for bug in BUGS:
        for file, text in changed(ROOT, bug).items():
            compile(text, file, "exec")


@pytest.mark.parametrize("before", ["no such words", "import"])
def test_bug_that_does_not_match_raises(before):
    bug = Bug("a bug", (Edit("controller/run/pod.py", before, ""),), BUGS[0].scene, frozenset())
    with pytest.raises(AssertionError, match="does not fit any more"):
        changed(ROOT, bug)
