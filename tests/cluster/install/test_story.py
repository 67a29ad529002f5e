"""The chart for real, in own namespaces: installed, used, upgraded under a live run, uninstalled twice."""

import json
import socket

import pytest

from crewyard import Client
from tests.cluster.install.installation import ROOT, CommandError, Installation, image, kubectl, until
from tests.e2e.workshop import archive, tree

SLOW = """
import time


def kickoff(inputs):
    time.sleep(inputs["seconds"])
    return {"waited": True}
"""


@pytest.fixture
def installation():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    made = Installation(port, image())
    try:
        made.prepare()
        yield made
    finally:
        made.remove()


def deployed(client: Client, project: str, content: bytes) -> str:
    """Deploys an archive by upload; the id once it is active."""
    ticket = client.announce_upload(project, len(content))
    client.send_upload(ticket, lambda: iter([content]))
    made = client.create_deployment(project, build_context_url=ticket["build_context_url"], message="First")
    log = "".join(client.follow_build_log(made["id"]))
    found = until(lambda: _settled(client, made["id"]))
    assert found["status"] == "active", (found, log)
    return made["id"]


def _settled(client: Client, deployment: str):
    found = client.get_deployment(deployment)
    return found if found["status"] not in ("pending", "building") else None


def ended(client: Client, run: str):
    """The run, once it has ended."""
    return until(lambda: found if (found := client.get_run(run))["completed_at"] else None)


def names(kind: str, namespace: str) -> set[str]:
    """The objects of a kind in a namespace."""
    return set(kubectl("-n", namespace, "get", kind, "-o", "name").split())


def test_from_an_empty_namespace_to_nothing_left(installation):
    said = installation.install()
    assert "python3 -m api key" in said and "port-forward" in said
    first, second = installation.key(), installation.key()
    assert first != second
    everything = kubectl("-n", installation.namespace, "get", "secrets,configmaps,events", "-o", "yaml")
    logs = kubectl("-n", installation.namespace, "logs", f"deployment/{installation.prefix}-api")
    assert first not in everything + logs

    with installation.client(first) as client:
        client.create_project("plain")
        deployment = deployed(
            client, "plain", archive({**tree(ROOT / "examples" / "python"), "slow.py": SLOW})
        )
        run = client.start_run("plain", {"name": "chart"})["id"]
        assert ended(client, run)["output"] == {"greeting": "hello, chart"}
        assert [one["name"] for one in client.list_artifacts(run).items] == ["greeting.txt"]
        live = client.start_run("plain", {"seconds": 20}, entrypoint="slow:kickoff")["id"]
        until(lambda: client.get_run(live)["status"] == "running")

    # A changed value renews both processes; the crew does not notice.
    pods = names("pods", installation.namespace)
    installation.install('logLevel="debug"')
    assert pods & names("pods", installation.namespace) == set()
    with installation.client(second) as client:
        done = ended(client, live)
        assert (done["status"], done["output"]) == ("succeeded", {"waited": True})
        kinds = [event["type"] for event in client.list_events(live).items]
        assert (kinds[0], kinds[-1], kinds.count("run.started")) == ("run.started", "run.completed", 1)

    # Uninstalled, its objects and its data stay; installed again, all is there.
    installation.uninstall()
    assert names("deployments.apps", installation.namespace) == set()
    assert names("pvc", installation.namespace) == {f"persistentvolumeclaim/{installation.prefix}-data"}
    assert "project.crewyard.dev/plain" in names("projects.crewyard.dev", installation.crews)
    installation.install()
    with installation.client(first) as client:
        assert {one["id"] for one in client.list_runs().items} == {run, live}
        assert client.get_run(run)["output"] == {"greeting": "hello, chart"}
        assert client.get_deployment(deployment)["status"] == "active"
        assert ended(client, client.start_run("plain", {})["id"])["status"] == "succeeded"

    # And without keeping anything.
    installation.uninstall()
    for namespace in (installation.crews, installation.namespace):
        kubectl("delete", "namespace", namespace, "--timeout=120s")
    left = kubectl("get", "clusterrole,clusterrolebinding,validatingadmissionpolicy", "-o", "json")
    assert installation.name not in {one["metadata"]["name"] for one in json.loads(left)["items"]}
    assert installation.prefix not in left
    with pytest.raises(CommandError):
        kubectl("get", "namespace", installation.crews)
    # The other installation's kinds were none of its business.
    assert "crewyard.dev" in kubectl("get", "crd", "runs.crewyard.dev", "-o", "name")
