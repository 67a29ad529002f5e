"""TLS between pods and the installed service, with another certificate and another CA."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterable
from typing import Any

import pytest

from tests.cluster.install.installation import Installation, kubectl, until
from tests.cluster.install.usage import deploy, wait_ended
from tests.e2e.upload_project import archive
from tests.testbed.certificates import TestAuthority

CREW = {
    "main.py": """
import time
from pathlib import Path


def kickoff(inputs):
    for number in range(inputs["lines"]):
        print("line", number)
        time.sleep(0.05)
    Path("artifacts/large.bin").write_bytes(bytes(5_000_000))
    return {"lines": inputs["lines"]}
""",
}
SECRET, OTHER_AUTHORITY = "internal-tls", "other-authority"


def store_certificate(installation: Installation, authority: TestAuthority) -> None:
    """Create or replace the Secret of the TLS ports, as cert-manager does."""
    served = authority.issue(
        *(f"{installation.prefix}-{part}.{installation.namespace}.svc" for part in ("api", "controller"))
    )
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": installation.namespace},
        "stringData": {"tls.crt": served.text, "tls.key": served.key, "ca.crt": authority.text},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(secret))


def sample(text: str, name: str) -> float:
    """Return the value of one series in the text of metrics."""
    [line] = [one for one in text.splitlines() if one.startswith(f"{name} ")]
    return float(line.split()[1])


def expiry(installation: Installation, component: str) -> float:
    """Return when the certificate that a process serves expires, by its metrics."""
    return sample(metrics(installation, component), "crewyard_tls_certificate_expiry_timestamp_seconds")


def metrics(installation: Installation, component: str) -> str:
    """Return the metrics of API server or controller."""
    if component == "api":
        with urllib.request.urlopen(f"http://127.0.0.1:{installation.port}/metrics", timeout=120) as response:
            return str(response.read().decode())
    service = f"services/{installation.prefix}-controller:9090"
    return kubectl("get", "--raw", f"/api/v1/namespaces/{installation.namespace}/{service}/proxy/metrics")


def update_files(installation: Installation, component: str) -> None:
    """Let the kubelet update the mounted files at once, and not within a minute or two."""
    selector = f"app.kubernetes.io/component={component}"
    kubectl("-n", installation.namespace, "annotate", "pod", "-l", selector, "example.com/changed=now")


def controller_pods(installation: Installation) -> str:
    """Return the names of the controller's pods and how often they were restarted."""
    selector = "app.kubernetes.io/component=controller"
    columns = "jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[*].restartCount} {end}"
    return kubectl("-n", installation.namespace, "get", "pods", "-l", selector, "-o", columns)


def lines_of(events: Iterable[Any]) -> list[str]:
    """Return what the crew printed."""
    logged = [event["data"]["message"] for event in events if event["type"] == "log"]
    return [line for line in logged if line.startswith("line ")]


@pytest.mark.nightly
def test_pods_use_tls_and_accept_one_authority(installation):
    """Slow: installs the chart, builds a crew and restarts the service with another authority."""
    authority = TestAuthority()
    kubectl("create", "namespace", installation.namespace)
    store_certificate(installation, authority)
    installation.extra_values = {"limits": {"start_seconds": 45}}
    tls = (f'internalTls.existingSecret="{SECRET}"', "internalTls.plain=false")
    installation.install(*tls)
    key = installation.create_key()
    with installation.client(key) as client:
        client.create_project("plain")
        deploy(client, "plain", archive(CREW))
        # The build has reported to the controller, whose plain port takes no results.
        handshakes = 'crewyard_tls_handshakes_total{result="done"}'
        assert sample(metrics(installation, "controller"), handshakes) >= 1

        # The plain port serves no calls of pods.
        claim = urllib.request.Request(
            f"http://127.0.0.1:{installation.port}/internal/v1/runs/run-a/claim", b"{}", method="POST"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(claim, timeout=120)
        assert refused.value.code == 403

        # Another certificate of the authority, while a run streams its events.
        run = client.start_run("plain", {"lines": 400})["id"]
        until(lambda: len(client.list_events(run).items) > 10)
        before = {component: expiry(installation, component) for component in ("api", "controller")}
        store_certificate(installation, authority)
        for component in before:
            update_files(installation, component)
        until(lambda: all(expiry(installation, component) > before[component] for component in before))
        second = client.start_run("plain", {"lines": 1})["id"]
        assert wait_ended(client, second)["output"] == {"lines": 1}
        assert wait_ended(client, run)["output"] == {"lines": 400}
        assert lines_of(client.follow_run(run)) == [f"line {number}" for number in range(400)]
        assert [(item["name"], item["size"]) for item in client.list_artifacts(run).items] == [
            ("large.bin", 5_000_000)
        ]

    # Pods accept another authority than the one that signed the certificate.
    other, in_namespace = TestAuthority(), ("-n", installation.namespace)
    kubectl(*in_namespace, "create", "configmap", OTHER_AUTHORITY, f"--from-literal=ca.crt={other.text}")
    installation.install(*tls, f'internalTls.caConfigMap="{OTHER_AUTHORITY}"')
    with installation.client(key) as client:
        run = client.start_run("plain", {"lines": 1})["id"]
        ended = wait_ended(client, run)
        assert (ended["status"], ended["error"]["reason"]) == ("failed", "StartTimeout")
        host = f"{installation.prefix}-api.{installation.namespace}.svc:8443"
        assert f"the certificate of {host} is not accepted" in ended["error"]["message"]
        assert ended["started_at"] is None
        assert {event["type"] for event in client.list_events(run).items} == {"run.failed"}

        # The one that signed it is added: the controller gives both to new pods without a restart.
        controller = controller_pods(installation)
        both = json.dumps({"data": {"ca.crt": other.text + authority.text}})
        kubectl(*in_namespace, "patch", "configmap", OTHER_AUTHORITY, "--patch", both)
        update_files(installation, "controller")
        log = (*in_namespace, "logs", f"deployment/{installation.prefix}-controller")
        until(lambda: "internal_ca_loaded" in kubectl(*log))
        run = client.start_run("plain", {"lines": 1})["id"]
        assert wait_ended(client, run)["output"] == {"lines": 1}
        assert controller_pods(installation) == controller
