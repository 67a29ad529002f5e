"""Which Secrets a Project may use: what the Secret says, who owns it, where its content goes."""

import pytest

from crds.objects import Project
from crds.secrets.use import (
    SecretReference,
    SecretUse,
    build_references,
    commit_status_reference,
    credential_problem,
    git_reference,
    github_reference,
    notification_reference,
    parse_secret_use,
    pull_references,
    variables_problem,
    webhook_reference,
)

ANY, LABELLED = SecretUse.ANY, SecretUse.LABELLED
GIT = SecretReference("source.git.secretRef", "git", "git.example.com")


def project(name="alpha", uid="uid-alpha", **spec):
    return Project({"metadata": {"name": name, "uid": uid}, "spec": spec})


def secret(label=None, projects=None, hosts=None, owner=None, managed=False, **other_owner):
    labels = {"crewyard.dev/project": label} if label else {}
    labels |= {"app.kubernetes.io/managed-by": "crewyard"} if managed else {}
    notes = {"crewyard.dev/projects": projects, "crewyard.dev/hosts": hosts}
    owned = {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "name": "alpha", "uid": owner}
    return {
        "metadata": {
            "labels": labels,
            "annotations": {name: text for name, text in notes.items() if text is not None},
            "ownerReferences": [{**owned, **other_owner}] if owner else [],
        }
    }


@pytest.mark.parametrize(
    ("found", "use", "allowed"),
    [
        (None, LABELLED, True),
        (secret(), ANY, True),
        (secret(), LABELLED, False),
        (secret("alpha"), LABELLED, True),
        (secret("beta"), ANY, False),
        (secret("beta"), LABELLED, False),
        (secret(projects="beta, alpha"), LABELLED, True),
        (secret(projects="*"), LABELLED, True),
        (secret(projects="beta"), ANY, False),
        (secret(projects=""), ANY, False),
        (secret("beta", projects="alpha"), LABELLED, True),
        (secret("alpha", hosts="git.example.com"), LABELLED, True),
        (secret("alpha", hosts="other.example.com, GIT.example.com"), LABELLED, True),
        (secret("alpha", hosts="git.example.com,other.example.com"), LABELLED, True),
        (secret("alpha", hosts="example.com"), LABELLED, False),
        (secret(hosts="other.example.com"), ANY, False),
    ],
)
def test_a_secret_says_who_may_use_it(found, use, allowed):
    assert (credential_problem(found, GIT, project(), use) is None) is allowed


@pytest.mark.parametrize(
    ("found", "use", "allowed"),
    [
        (secret("alpha"), LABELLED, False),
        (secret(projects="*"), LABELLED, False),
        (secret(managed=True), ANY, False),
        (secret(owner="uid-beta"), ANY, False),
        (secret(), ANY, True),
    ],
)
def test_variables_are_no_credential(found, use, allowed):
    reference = SecretReference("source.git.secretRef", "beta-env", "git.example.com")
    assert (credential_problem(found, reference, project(), use) is None) is allowed


@pytest.mark.parametrize(
    ("found", "use", "own"),
    [
        (None, LABELLED, True),
        (secret(owner="uid-alpha"), LABELLED, True),
        (secret("alpha", owner="uid-before"), ANY, False),
        (secret("alpha"), LABELLED, True),
        (secret(projects="alpha"), LABELLED, True),
        (secret(), LABELLED, False),
        (secret(), ANY, True),
        (secret("beta"), ANY, False),
        (secret(owner="uid-before", kind="Deployment"), ANY, True),
        (secret(owner="uid-before", apiVersion="apps/v1"), ANY, True),
    ],
)
def test_variables_belong_to_the_uid_or_say_so(found, use, own):
    assert (variables_problem(found, project(), use) is None) is own


def test_the_message_says_what_to_do():
    problem = credential_problem(secret(), GIT, project(), LABELLED)
    assert problem.startswith("source.git.secretRef names the Secret git, ")
    assert "kubectl label secret git crewyard.dev/project=alpha" in problem
    label = "kubectl label secret alpha-env crewyard.dev/project=alpha"
    assert label in variables_problem(secret(), project(), LABELLED)
    assert "earlier project" in variables_problem(secret(owner="x"), project(), LABELLED)


def test_the_references_of_a_project():
    found = project(
        source={
            "git": {
                "url": "ssh://git@Git.example.com:2222/x",
                "secretRef": {"name": "a"},
                "verify": {"secretRef": {"name": "g"}},
            }
        },
        build={"secretRef": {"name": "b"}, "push": {"secretRef": {"name": "c"}}},
        github={"repository": "t/a", "secretRef": {"name": "d"}},
        webhook={"secretRef": {"name": "e"}},
        commitStatus={"provider": "gitlab", "repository": "t/a", "secretRef": {"name": "h"}},
        pod={"imagePullSecrets": [{"name": "f"}]},
    )
    assert git_reference(found) == SecretReference("source.git.secretRef", "a", "git.example.com:2222")
    assert build_references(found, "registry:5000/team/crews") == (
        SecretReference("source.git.verify.secretRef", "g"),
        SecretReference("build.secretRef", "b"),
        SecretReference("build.push.secretRef", "c", "registry:5000"),
    )
    assert github_reference(found, "https://api.github.com") == SecretReference(
        "github.secretRef", "d", "api.github.com"
    )
    assert commit_status_reference(found, "https://gitlab.example.com") == SecretReference(
        "commitStatus.secretRef", "h", "gitlab.example.com"
    )
    assert webhook_reference(found) == SecretReference("webhook.secretRef", "e")
    assert pull_references(found) == (SecretReference("pod.imagePullSecrets", "f"),)
    hook = {"name": "ops", "url": "https://u:p@Ops.example.com/x", "secretRef": {"name": "i"}}
    assert notification_reference(hook) == SecretReference(
        "notifications[ops].secretRef", "i", "ops.example.com"
    )
    malformed = SecretReference("notifications[ops].secretRef", "i", "")
    assert notification_reference({**hook, "url": "https://[x"}) == malformed
    bare = project()
    assert (git_reference(bare), build_references(bare, "r"), pull_references(bare)) == (None, (), ())


def test_the_setting_has_two_values():
    assert [parse_secret_use(text) for text in ("any", "labelled")] == [ANY, LABELLED]
    with pytest.raises(ValueError, match="must be labelled or any"):
        parse_secret_use("yes")
