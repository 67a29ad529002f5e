"""The chart in its own namespaces: install, use, upgrade during a run, uninstall twice."""

import json

import pytest

from tests.cluster.install.installation import DELETE_TIMEOUT, ROOT, CommandError, kubectl, until
from tests.cluster.install.usage import deploy, wait_ended
from tests.e2e.upload_project import archive, tree

SLOW = """
import time


def kickoff(inputs):
    time.sleep(inputs["seconds"])
    return {"waited": True}
"""


def names(kind: str, namespace: str) -> set[str]:
    """Return the names of the objects of a kind in a namespace."""
    return set(kubectl("-n", namespace, "get", kind, "-o", "name").split())


# Takes minutes on an idle machine; the timeouts are for a busy one. `make test` checks the rendered objects.
@pytest.mark.nightly
def test_install_use_upgrade_and_uninstall(installation):
    """Slow: installs, upgrades and uninstalls the chart, with a build and runs."""
    notes = installation.install()
    assert "python3 -m api key" in notes and "port-forward" in notes
    first, second = installation.create_key(), installation.create_key()
    assert first != second
    everything = kubectl("-n", installation.namespace, "get", "secrets,configmaps,events", "-o", "yaml")
    logs = kubectl("-n", installation.namespace, "logs", f"deployment/{installation.prefix}-api")
    assert first not in everything + logs

    with installation.client(first) as client:
        client.create_project("plain")
        deployment = deploy(client, "plain", archive({**tree(ROOT / "examples" / "python"), "slow.py": SLOW}))
        run = client.start_run("plain", {"name": "chart"})["id"]
        assert wait_ended(client, run)["output"] == {"greeting": "hello, chart"}
        assert [item["name"] for item in client.list_artifacts(run).items] == ["greeting.txt"]
        live = client.start_run("plain", {"seconds": 20}, entrypoint="slow:kickoff")["id"]
        until(lambda: client.get_run(live)["status"] == "running")

    # A changed value restarts both processes; the run continues.
    pods = names("pods", installation.namespace)
    installation.install('logLevel="debug"')
    assert pods & names("pods", installation.namespace) == set()
    with installation.client(second) as client:
        done = wait_ended(client, live)
        assert (done["status"], done["output"]) == ("succeeded", {"waited": True})
        kinds = [event["type"] for event in client.list_events(live).items]
        assert (kinds[0], kinds[-1], kinds.count("run.started")) == ("run.started", "run.completed", 1)

    # After uninstall, objects and data stay; a new install finds them.
    installation.uninstall()
    assert names("deployments.apps", installation.namespace) == set()
    assert names("pvc", installation.namespace) == {f"persistentvolumeclaim/{installation.prefix}-data"}
    assert "project.crewyard.dev/plain" in names("projects.crewyard.dev", installation.crews)
    installation.install()
    with installation.client(first) as client:
        assert {item["id"] for item in client.list_runs().items} == {run, live}
        assert client.get_run(run)["output"] == {"greeting": "hello, chart"}
        assert client.get_deployment(deployment)["status"] == "active"
        assert wait_ended(client, client.start_run("plain", {})["id"])["status"] == "succeeded"

    # Delete everything.
    installation.uninstall()
    for namespace in (installation.crews, installation.namespace):
        kubectl("delete", "namespace", namespace, DELETE_TIMEOUT)
    left = kubectl("get", "clusterrole,clusterrolebinding,validatingadmissionpolicy", "-o", "json")
    assert installation.name not in {item["metadata"]["name"] for item in json.loads(left)["items"]}
    assert installation.prefix not in left
    with pytest.raises(CommandError):
        kubectl("get", "namespace", installation.crews)
    # The CRDs of the other installation stay.
    assert "crewyard.dev" in kubectl("get", "crd", "runs.crewyard.dev", "-o", "name")
