"""Mistakes are put into copies of the product: the campaign catches each, and nothing where there is none.

A checker that was never seen to fail shows nothing.
"""

from collections.abc import Callable

import pytest

from tests.campaign.bugs import pod_scenes
from tests.campaign.bugs.bug import Bug, Scene, copied, plant
from tests.campaign.bugs.catalogue import BUGS, QUICK
from tests.campaign.reports.report import keep_bug
from tests.campaign.testbed import ROOT

SLOW = [bug for bug in BUGS if bug.name not in QUICK]
OFTEN = [bug for bug in BUGS if bug.name in QUICK]


def scenes(bugs: list[Bug]) -> list[Scene]:
    """Their scenes, each once."""
    return list(dict.fromkeys(bug.scene for bug in bugs))


def _name(thing: Bug | Callable[..., object]) -> str:
    return thing.name if isinstance(thing, Bug) else thing.__name__


quick = pytest.mark.parametrize("bug", OFTEN, ids=_name)
quick_scenes = pytest.mark.parametrize("scene", scenes(OFTEN), ids=_name)
slow = pytest.mark.parametrize("bug", SLOW, ids=_name)
slow_scenes = pytest.mark.parametrize("scene", [*scenes(SLOW), pod_scenes.second_pod], ids=_name)


async def catches(directory, bug: Bug) -> None:
    """Plant the bug and run its scene."""
    tree = copied(ROOT, directory)
    plant(tree, bug)
    found = await bug.scene(directory, tree)
    print("\n".join(f"{one.kind} {one.run}: {one.text}" for one in found))
    caught = bug.shows <= {one.kind for one in found}
    keep_bug(bug.name, caught)
    assert caught, f"not caught: {bug.name}; seen: {found}"


async def finds_nothing(directory, scene: Scene) -> None:
    """Run the scene with an unchanged copy."""
    assert await scene(directory, copied(ROOT, directory)) == []


@pytest.mark.nightly
@quick
async def test_bug_is_caught(tmp_path, bug):
    """Slow: a test bed with a copy of the product."""
    await catches(tmp_path, bug)


@pytest.mark.nightly
@quick_scenes
async def test_no_violation_without_a_bug(tmp_path, scene):
    """Slow: a test bed with a copy of the product."""
    await finds_nothing(tmp_path, scene)


@pytest.mark.campaign
@slow
async def test_slow_bug_is_caught(tmp_path, bug):
    await catches(tmp_path, bug)


@pytest.mark.campaign
@slow_scenes
async def test_slow_scene_has_no_violation_without_a_bug(tmp_path, scene):
    await finds_nothing(tmp_path, scene)
