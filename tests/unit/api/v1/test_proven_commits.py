"""Proof of an upload's commit: only by the token of a workflow that ran for it."""

import pytest

from api.auth import workflows
from api.auth.principal import Caller
from api.auth.scopes import Grants
from api.v1.deployments import view
from crds.github import proven_commits
from crds.names import ANNOTATION_PROVEN_COMMIT

KEY = "0123456789abcdef0123456789abcdef"
SHA = "a" * 40
CLAIMS = {"repository": "Octo/Tides", "repository_id": "42", "sha": SHA}
UPLOAD = {"project": "tides", "source": {"archive": {"upload": "upl_1"}}, "gitSha": SHA}


def written(spec=UPLOAD, **claims):
    """Return the proof that the API writes for a workflow with these claims; None for none."""
    named = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    commit = workflows.proven_commit(named)
    caller = Caller("workflow:x", Grants(), None, None, "workflow", "x", "x", commit)
    return view.annotations(caller, spec, KEY).get(ANNOTATION_PROVEN_COMMIT)


def test_workflow_proves_the_commit_it_runs_for():
    given = written()
    assert given is not None
    assert proven_commits.is_proven((KEY,), UPLOAD, "octo/tides", SHA, given)
    assert not proven_commits.is_proven((KEY,), UPLOAD, "octo/other", SHA, given)
    assert not proven_commits.is_proven((KEY,), UPLOAD, "octo/tides", "b" * 40, given)


@pytest.mark.parametrize(
    "claims",
    [
        {"sha": "b" * 40},
        {"sha": None},
        {"sha": 1},
        {"sha": SHA.upper()},
        {"repository_id": None},
        {"repository_id": ""},
        {"repository_id": 42},
    ],
)
def test_other_tokens_prove_nothing(claims):
    assert written(**claims) is None


def test_other_callers_and_commits_prove_nothing():
    key = Caller("K", Grants(), None, None, "key", "K", "K")
    assert ANNOTATION_PROVEN_COMMIT not in view.annotations(key, UPLOAD, KEY)
    assert written({**UPLOAD, "gitSha": SHA[:7]}) is None
    assert written({"project": "tides", "source": UPLOAD["source"]}) is None
