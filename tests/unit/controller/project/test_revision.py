"""What a head asks for, at its limits."""

from controller.project.revision import MAX_ATTEMPTS, desired_spec, resolve_revision
from controller.source.observed import ObservedSource
from crds.deployment_name import git_name

GIT = {"url": "https://example.org/x.git"}
COMMIT = "c" * 40


def test_commit_retries_are_bounded(make):
    project = make.project(source={"git": GIT}, status={"source": {"commit": COMMIT, "tree": "t"}})
    look = ObservedSource(GIT, "2099-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    spec = desired_spec(project, look)
    more = {key: value for key, value in spec.items() if key != "project"}
    tried = [
        make.deployment(git_name(project.uid, spec, attempt), built=False, phase="Failed", **more)
        for attempt in range(1, MAX_ATTEMPTS + 1)
    ]
    assert resolve_revision(project, tried[:-1], look).create is not None
    last = resolve_revision(project, tried, look)
    assert last.create is None and last.deployment == tried[-1]


def at(project, crew):
    """A deployment of the head's commit for a crew."""
    git = {**GIT, "crew": crew}
    spec = desired_spec(type(project)({**project.raw, "spec": {"source": {"git": git}}}), LOOK)
    return git_name(project.uid, spec, 1), {key: value for key, value in spec.items() if key != "project"}


LOOK = ObservedSource(GIT, "", "main", COMMIT, "t", "subject")


def test_only_a_change_of_crew_counts_as_a_head_move(make):
    seen = {"commit": COMMIT, "tree": "t", "crew": "b"}
    project = make.project(
        source={"git": {**GIT, "crew": "b"}}, status={"source": seen, "observedGeneration": 0}
    )
    (first, spec_a), (second, spec_b) = at(project, "a"), at(project, "b")
    # Crew a was rolled back to after crew b had been deployed from the same commit.
    deployments = [make.deployment(first, order=3, **spec_a), make.deployment(second, order=2, **spec_b)]
    assert not resolve_revision(project, deployments, LOOK).moved
    back = make.project(source={"git": {**GIT, "crew": "a"}}, status={"source": seen})
    assert resolve_revision(back, deployments, LOOK).moved


def test_future_request_is_handled_once(make):
    asked = "2099-01-01T00:00:00Z"
    project = make.project(source={"git": GIT}, status={"source": {"commit": COMMIT, "tree": "t"}})
    look = ObservedSource(GIT, asked, "main", COMMIT, "t", "subject")
    spec = desired_spec(project, look)
    more = {key: value for key, value in spec.items() if key != "project"}
    first = make.deployment(git_name(project.uid, spec, 1), built=False, phase="Failed", **more)
    again = resolve_revision(project, [first], look).create
    assert again.body["spec"]["attempt"] == 2
    assert again.body["metadata"]["labels"] == {"crewyard.dev/project": project.name}
    metadata = {"annotations": again.body["metadata"]["annotations"]}
    second = make.deployment(again.name, built=False, phase="Failed", metadata=metadata, **more, attempt=2)
    assert resolve_revision(project, [first, second], look).create is None
    later = ObservedSource(GIT, "2100-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    assert resolve_revision(project, [first, second], later).create is not None


def test_request_after_a_commit_outside_the_path_is_an_attempt(make):
    git = {**GIT, "path": "a"}
    project = make.project(source={"git": git}, status={"source": {"commit": COMMIT, "tree": "t"}})
    failed_spec = desired_spec(project, ObservedSource(git, "", "main", "b" * 40, "t", "before"))
    more = {key: value for key, value in failed_spec.items() if key != "project"}
    failed = make.deployment("dep-b", built=False, phase="Failed", order=1, **more)
    look = ObservedSource(git, "2099-01-01T00:00:00Z", "main", COMMIT, "t", "subject")
    again = resolve_revision(project, [failed], look).create
    assert (again.body["spec"]["source"]["git"]["commit"], again.body["spec"]["attempt"]) == (COMMIT, 1)
    assert resolve_revision(project, [failed], ObservedSource(git, "", "main", COMMIT, "t")).create is None
    # One attempt for each value.
    metadata = {"annotations": again.body["metadata"]["annotations"]}
    spec = {key: value for key, value in again.body["spec"].items() if key != "project"}
    second = make.deployment(again.name, built=False, phase="Failed", order=2, metadata=metadata, **spec)
    assert resolve_revision(project, [failed, second], look).create is None
    # A success since then leaves nothing to try again.
    built = make.deployment("dep-c", order=3, phase="Active", **more)
    assert resolve_revision(project, [failed, built], look).create is None
