"""Each reason and each error code has a troubleshooting entry with an action."""

import ast
import re

import pytest

from api.errors import _CODES
from crds.conditions import NAME_TAKEN, SCHEDULE_INVALID
from crds.reasons import BuildReason, ProgressReason, RunReason
from tests.testbed.documentation import DOCS, ROOT

PAGE = (DOCS / "troubleshooting.md").read_text()
ENTRIES = dict(re.findall(r"^### (\S+)\n\n(.+?)(?=\n##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
WORD = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+")
# Kubernetes' own words, which the controller reads or sets but does not report as reasons.
KUBERNETES = {
    "RuntimeDefault", "IfNotPresent", "FallbackToLogsOnError", "OnRootMismatch", "InvalidImageName",
    "PodScheduled", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "DisruptionTarget",
    "RunContainerError", "NodeAffinity", "PodInitializing", "NodeShutdown",
    "EvictionByEvictionAPI", "PreemptionByScheduler",
    "DeletionByTaintManager", "DeletionByPodGC", "NoExecute", "CreateContainerError",
    "CreateContainerConfigError", "ContainerCreating", "ClientIP", "NoSchedule", "NodePort",
    "ConfigMap", "ServiceAccount", "EmptyDir", "PreferNoSchedule", "DoNotSchedule",
    "ScheduleAnyway", "BestEffort",
    # Of a pod that the kubelet rejects.
    "OutOf", "UnexpectedAdmissionError",
    # Of a pod that Kueue stops.
    "TerminationTarget", "WorkloadEvictedDueToPreempted",
    # The format of SBOMs.
    "CycloneDX",
}  # fmt: skip
EVENTS = {"Building", "Built", "Activated", "Deactivated", "Canceling"}


def reported_by_the_controller():
    """Return every word of that form among the controller's strings, except classes in annotations."""
    words, classes = set(), set()
    for path in (ROOT / "controller").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                classes.add(node.name)
            elif (
                isinstance(node, ast.Constant) and isinstance(node.value, str) and WORD.fullmatch(node.value)
            ):
                words.add(node.value)
    return words - classes - KUBERNETES


@pytest.mark.parametrize(
    "word",
    sorted({*map(str, RunReason), *map(str, BuildReason), *_CODES.values(), "queue_full", "budget_exceeded"}),
)
def test_every_reason_and_code_has_an_entry_with_an_action(word):
    assert len(ENTRIES[word]) > 40
    assert "**Do:**" in ENTRIES[word] or word in ("method_not_allowed", "range_not_satisfiable")


def test_every_reason_of_the_controller_is_explained():
    other = "".join((DOCS / name).read_text() for name in ("project.md", "deployment.md", "run.md"))
    explained = set(ENTRIES) | set(re.findall(r"`(\w+)`", PAGE + other))
    assert (reported_by_the_controller() | EVENTS | {*map(str, ProgressReason)}) - explained == set()


def test_headings_are_unique():
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    assert sorted({name for name in headings if headings.count(name) > 1}) == []


def test_no_entry_is_obsolete():
    current = {
        *map(str, RunReason),
        *map(str, BuildReason),
        *_CODES.values(),
        "queue_full",
        "budget_exceeded",
        *reported_by_the_controller(),
        NAME_TAKEN,
        SCHEDULE_INVALID,
    }
    current |= {"Queued", "Starting", "Unschedulable", "Unreachable", *map(str, ProgressReason)}
    assert set(ENTRIES) - current == set()
