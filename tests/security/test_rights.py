"""What each identity may do is what is written down, and no way leads to more."""

import re
from pathlib import Path

import pytest

from crds.names import COMPONENT_BUILD, COMPONENT_RUN, LABEL_COMPONENT
from tests.e2e.testbed import eventually
from tests.security.attempts import EscalationAttempt, attempts

GOLDEN = Path(__file__).parent / "golden"
CREWS, SYSTEM = "crews", "crewyard-system"
ACCOUNTS = ("crewyard-api", "crewyard-controller")
ATTEMPTS = {"crewyard-api": 55, "crewyard-controller": 57}
"""By account, those of everybody and its own: one that is not made is a failure."""
PLACES = (CREWS, SYSTEM, "default", "kube-system")


async def rights(testbed, namespace: str, user: str) -> set[str]:
    """Return the lines of `kubectl auth can-i --list` without the rights of all users."""
    listed = await testbed.kubectl("auth", "can-i", "--list", "-n", namespace, f"--as={user}")
    found = set()
    for line in listed.splitlines()[1:]:
        resource = line.split(" ", 1)[0]
        if resource and not resource.startswith("self"):
            verbs = re.findall(r"\[[^]]*\]", line)[-1]
            found.add(f"{resource} {verbs}")
    return found


async def all_rights(testbed, namespace: str, account: str) -> set[str]:
    """The rights of an account in all places, as the golden lists have them."""
    user = f"system:serviceaccount:{namespace}:{account}"
    here = {place: await rights(testbed, place, user) for place in PLACES}
    shared = set.intersection(*here.values())
    lines = {f"everywhere: {right}" for right in shared}
    return lines | {f"{place}: {right}" for place, found in here.items() for right in found - shared}


def golden(name: str) -> set[str]:
    return set((GOLDEN / f"{name}.txt").read_text().split("\n")) - {""}


@pytest.mark.parametrize(
    ("namespace", "account"),
    [*((SYSTEM, one) for one in ACCOUNTS), (CREWS, "default"), (SYSTEM, "default")],
)
async def test_account_has_the_recorded_rights(testbed, namespace, account):
    found = await all_rights(testbed, namespace, account)
    assert found == golden(account)
    assert not [right for right in found if "*" in right or "cluster-admin" in right]


def test_accounts_that_read_secrets():
    readers = {
        (name, line)
        for name in (*ACCOUNTS, "default")
        for line in golden(name)
        if " [" in line and line.partition(": ")[2].startswith("secrets ")
    }
    # By name and in the crews' namespace only; neither lists them.
    assert readers == {
        ("crewyard-api", "crews: secrets [get create patch delete]"),
        ("crewyard-controller", "crews: secrets [get]"),
    }


SLEEPER = {"main.py": "import time\n\ndef kickoff():\n    time.sleep(60)\n", "requirements.txt": ""}


async def test_crew_pods_have_no_account_and_no_token(testbed, apiserver, upload_projects):
    """A build and a run make one pod of each kind; all other pods are checked, too.

    Slow: a whole build, and a run.
    """
    upload_project = await upload_projects()
    components: set[str] = set()

    async def look() -> set[str]:
        # Not by kubectl: on a busy machine it starts more slowly than a build ends.
        path = "/api/v1/namespaces/crews/pods?labelSelector=app.kubernetes.io/managed-by%3Dcrewyard"
        for pod in (await apiserver.call("GET", path)).data["items"]:
            spec, name = pod["spec"], pod["metadata"]["name"]
            assert spec["automountServiceAccountToken"] is False, name
            assert spec.get("serviceAccountName", "default") == "default", name
            assert not [
                volume for volume in spec.get("volumes", ()) if "projected" in volume or "secret" in volume
            ], name
            components.add(pod["metadata"]["labels"][LABEL_COMPONENT])
        return components

    deployment = await upload_project.deploy(SLEEPER)
    await eventually(look, lambda seen: COMPONENT_BUILD in seen, 300)
    assert (await upload_project.wait_finished(deployment))["status"] == "active"
    run = await testbed.post("/v1/runs", {"deployment": deployment})
    await eventually(look, lambda seen: COMPONENT_RUN in seen, 300)
    await testbed.call("POST", f"/v1/runs/{run['id']}/cancel", {})


@pytest.mark.parametrize("account", ACCOUNTS)
async def test_privilege_escalation_is_denied(testbed, apiserver, account):
    token = await apiserver.token_of(SYSTEM, account)
    node = (await apiserver.call("GET", "/api/v1/nodes")).data["items"][0]["metadata"]["name"]
    pods = (await apiserver.call("GET", f"/api/v1/namespaces/{SYSTEM}/pods")).data["items"]
    tried = attempts(account, node, pods[0]["metadata"]["name"])
    assert len({attempt.name for attempt in tried}) == ATTEMPTS[account]
    granted = []
    for attempt in tried:
        if await asked(apiserver, account, attempt):
            granted.append(f"asked: {attempt.name}")
        answer = await apiserver.call(
            attempt.method, attempt.path, attempt.body, token=token, headers=attempt.headers
        )
        if answer.status != 403:
            granted.append(f"tried: {attempt.name}: {answer.status} {answer.text[:200]}")
    assert granted == []


async def test_attempts_succeed_with_the_right(apiserver):
    """The control: for the administrator hardly any of the calls ends at the rights."""
    node = (await apiserver.call("GET", "/api/v1/nodes")).data["items"][0]["metadata"]["name"]
    tried = [one for account in ACCOUNTS for one in attempts(account, node, "x")]
    ended = []
    for attempt in tried:
        answer = await apiserver.call(attempt.method, attempt.path, attempt.body)
        if answer.status == 403 and "cannot" in answer.text:
            ended.append(attempt.name)
    assert ended == []


async def asked(apiserver, account: str, attempt: EscalationAttempt) -> bool:
    """Whether the apiserver says that the account may."""
    user = f"system:serviceaccount:{SYSTEM}:{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"]
    spec = {"user": user, "groups": groups, **attempt.review}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    answer = await apiserver.call("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer.data["status"]["allowed"])
