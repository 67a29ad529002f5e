"""What a head asks for, at its limits."""

from controller.project.heads import MAX_ATTEMPTS, judge, wanted_spec
from controller.project.looks import Look
from crds.git_names import git_name

GIT = {"url": "https://example.org/x.git"}
COMMIT = "c" * 40


def test_a_commit_is_not_tried_for_ever_however_late_its_request(make):
    project = make.project(source={"git": GIT}, status={"source": {"commit": COMMIT, "tree": "t"}})
    look = Look(GIT, "2099-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    spec = wanted_spec(project, look)
    more = {key: value for key, value in spec.items() if key != "project"}
    tried = [
        make.deployment(git_name(project.uid, spec, attempt), built=False, phase="Failed", **more)
        for attempt in range(1, MAX_ATTEMPTS + 1)
    ]
    assert judge(project, tried[:-1], look).create is not None
    last = judge(project, tried, look)
    assert last.create is None and last.deployment == tried[-1]
