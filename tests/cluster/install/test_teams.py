"""The chart with a second namespace: an installation gets one, and its teams do not see each other."""

import json

import pytest

from tests.cluster.install.installation import ROOT, CommandError, kubectl, until
from tests.cluster.install.usage import deploy, wait_ended
from tests.e2e.upload_project import archive, tree

CREW = archive(tree(ROOT / "examples" / "python"))
MEMBER = "member"
RIGHTS = "projects.crewyard.dev,deployments.crewyard.dev,runs.crewyard.dev"


def members(namespace: str) -> str:
    """Create an account with all rights to crews in a namespace; return its user name."""
    kubectl("-n", namespace, "create", "serviceaccount", MEMBER)
    kubectl("-n", namespace, "create", "role", MEMBER, "--verb=*", f"--resource={RIGHTS}")
    account = f"--serviceaccount={namespace}:{MEMBER}"
    kubectl("-n", namespace, "create", "rolebinding", MEMBER, f"--role={MEMBER}", account)
    return f"system:serviceaccount:{namespace}:{MEMBER}"


def project(namespace: str, name: str) -> str:
    """Return the manifest of a Project without a source."""
    metadata = {"name": name, "namespace": namespace}
    return json.dumps(
        {"apiVersion": "crewyard.dev/v1alpha1", "kind": "Project", "metadata": metadata, "spec": {}}
    )


def pod_names(namespace: str, prefix: str) -> list[str]:
    """Return the names of the pods of runs or builds in a namespace."""
    found = kubectl("-n", namespace, "get", "pods", "-o", "name").split()
    return [name for name in found if name.startswith(f"pod/{prefix}")]


def run_of(client, name):
    run = client.start_run(name, {"name": name})["id"]
    assert wait_ended(client, run)["output"] == {"greeting": f"hello, {name}"}
    return run


# Takes minutes: it builds twice and restarts the service.
@pytest.mark.nightly
def test_an_installation_gets_a_second_namespace(installation):
    """Slow: installs the chart with one namespace, then with two, with builds and runs in both."""
    installation.install()
    key = installation.create_key()
    with installation.client(key) as client:
        client.create_project("ours")
        deploy(client, "ours", CREW)
        first = run_of(client, "ours")

    installation.install(f'crews.teams=["{installation.team}"]')
    kubectl("apply", "-f", "-", stdin=json.dumps(installation.push_secret(installation.team)))
    users = {namespace: members(namespace) for namespace in (installation.crews, installation.team)}
    with installation.client(key) as client:
        # What was there works unchanged.
        assert client.get_run(first)["status"] == "succeeded"
        assert client.get_project("ours")["namespace"] is None
        run_of(client, "ours")
        assert client.create_project("theirs", namespace=installation.team)["namespace"] == installation.team
        deploy(client, "theirs", CREW)
        run = run_of(client, "theirs")
        name = run.replace("_", "-")
        assert pod_names(installation.team, name) and not pod_names(installation.crews, name)

        # The younger project of a name is refused by a condition.
        as_member = f"--as={users[installation.team]}"
        kubectl(as_member, "apply", "-f", "-", stdin=project(installation.team, "ours"))
        ready = 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}'
        get = ("-n", installation.team, "get", "projects.crewyard.dev", "ours", "-o", ready)
        assert until(lambda: kubectl(as_member, *get) == "NameTaken")
        assert client.get_project("ours")["namespace"] is None

    # Members of one team see nothing of the other, by kubectl or by the API.
    for namespace, other, own in (
        (installation.crews, installation.team, "ours"),
        (installation.team, installation.crews, "theirs"),
    ):
        as_member = f"--as={users[namespace]}"
        assert kubectl(as_member, "-n", namespace, "get", RIGHTS, "-o", "name")
        for kind in RIGHTS.split(","):
            with pytest.raises(CommandError, match="forbidden"):
                kubectl(as_member, "-n", other, "get", kind)
        with pytest.raises(CommandError, match="forbidden"):
            kubectl(as_member, "apply", "-f", "-", stdin=project(other, "intruder"))
        token = kubectl("-n", namespace, "create", "token", MEMBER, "--audience", "crewyard").strip()
        with installation.client(token) as client:
            assert [item["name"] for item in client.list_projects().items] == [own]
            assert {item["deployment_id"] for item in client.list_runs().items} == {
                client.get_project(own)["active_deployment_id"]
            }

    # The policies and limits of the first namespace hold in the second one.
    for kind in ("limitrange", "resourcequota", "networkpolicy"):
        assert len(kubectl("-n", installation.team, "get", kind, "-o", "name").split()) == len(
            kubectl("-n", installation.crews, "get", kind, "-o", "name").split()
        )
    with pytest.raises(CommandError, match="restricted"):
        kubectl(
            *("-n", installation.team, "run", "root", "--image=registry.invalid/x", "--dry-run=server"),
            '--overrides={"spec": {"containers": [{"name": "root", "image": "registry.invalid/x", '
            '"securityContext": {"runAsUser": 0}}]}}',
        )
