"""Whether `status.source` tells the tree of a head, so that no fetch is needed."""

from typing import Any

import pytest

from controller.source import poller
from controller.source.observed import ObservedSource

COMMIT = "c" * 40


@pytest.mark.parametrize(
    ("path", "recorded", "observed_generation", "known"),
    [
        ("b", {"path": "b"}, 2, True),
        # The poll of the new path has failed: its generation is observed, and the record is the old one.
        ("b", {"path": "a"}, 2, False),
        ("b", {}, 2, False),
        (None, {}, 2, True),
        (None, {}, 1, False),
    ],
)
def test_record_of_another_path_is_not_used(
    make: Any, path: str | None, recorded: dict[str, str], observed_generation: int, known: bool
) -> None:
    git = {"url": "https://example.org/x.git", **({"path": path} if path else {})}
    source = {"commit": COMMIT, "tree": "t", **recorded}
    status = {"observedGeneration": observed_generation, "source": source}
    project = make.project(source={"git": git}, status=status, metadata={"generation": 2})
    found = poller._recorded_commit(project, ObservedSource(git, ""), None, COMMIT)
    assert (found is not None and found.tree == "t") == known
