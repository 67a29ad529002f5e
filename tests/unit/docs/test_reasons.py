"""Troubleshooting has an entry for every reason and every error code, each with something to do."""

import ast
import re

import pytest

from api.errors import _CODES
from crds.reasons import BuildReason, RunReason
from tests.testbed.documentation import DOCS, ROOT

PAGE = (DOCS / "troubleshooting.md").read_text()
ENTRIES = dict(re.findall(r"^### (\S+)\n\n(.+?)(?=\n##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+")
# Words of the cluster's, which are read or set and never told as ours.
KUBERNETES = {
    "RuntimeDefault", "IfNotPresent", "FallbackToLogsOnError", "OnRootMismatch", "InvalidImageName",
    "PodScheduled", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "DisruptionTarget",
    "RunContainerError", "NodeAffinity", "PodInitializing", "NodeStatusUnknown", "NodeShutdown",
    "DeletionByTaintManager", "DeletionByPodGC", "NoExecute", "CreateContainerError",
    "CreateContainerConfigError", "ContainerCreating", "ClientIP", "NoSchedule", "NodePort",
    "ConfigMap", "ServiceAccount", "EmptyDir", "PreferNoSchedule", "DoNotSchedule",
    "ScheduleAnyway", "BestEffort",
}  # fmt: skip
EVENTS = {"Building", "Built", "Activated", "Deactivated", "Canceling"}


def told_by_the_controller():
    """Return every word of that form among the controller's strings, except classes in annotations."""
    found, classes = set(), set()
    for path in (ROOT / "controller").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                classes.add(node.name)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and WORD.fullmatch(node.value):
                found.add(node.value)
    return found - classes - KUBERNETES


@pytest.mark.parametrize(
    "word", sorted({*map(str, RunReason), *map(str, BuildReason), *_CODES.values(), "queue_full"})
)
def test_every_reason_and_code_has_an_entry_with_something_to_do(word):
    assert len(ENTRIES[word]) > 40
    assert "**Do:**" in ENTRIES[word] or word in ("method_not_allowed", "range_not_satisfiable")


def test_every_word_the_controller_tells_is_explained():
    other = "".join((DOCS / name).read_text() for name in ("project.md", "deployment.md", "run.md"))
    explained = set(ENTRIES) | set(re.findall(r"`(\w+)`", PAGE + other))
    assert (told_by_the_controller() | EVENTS) - explained == set()


def test_an_entry_stands_once_so_that_its_address_is_one():
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    assert sorted({name for name in headings if headings.count(name) > 1}) == []


def test_no_entry_is_left_of_a_word_that_nobody_says():
    said = {
        *map(str, RunReason),
        *map(str, BuildReason),
        *_CODES.values(),
        "queue_full",
        *told_by_the_controller(),
    }
    said |= {"Queued", "Starting", "Unschedulable", "Assembling", "Activating", "Unreachable"}
    assert set(ENTRIES) - said == set()
