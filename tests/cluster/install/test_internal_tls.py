"""TLS between pods and the API server on an installed service, with another certificate and another CA."""

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
    """Create or replace the Secret of the TLS port, as cert-manager does."""
    served = authority.issue(f"{installation.prefix}-api.{installation.namespace}.svc")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": SECRET, "namespace": installation.namespace},
        "stringData": {"tls.crt": served.text, "tls.key": served.key, "ca.crt": authority.text},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(secret))


def expiry(port: int) -> float:
    """Return when the served certificate expires, by the metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        lines = response.read().decode().splitlines()
    [line] = [one for one in lines if one.startswith("crewyard_tls_certificate_expiry_timestamp_seconds ")]
    return float(line.split()[1])


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

        # The plain port serves no calls of pods.
        claim = urllib.request.Request(
            f"http://127.0.0.1:{installation.port}/internal/v1/runs/run-a/claim", b"{}", method="POST"
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(claim, timeout=30)
        assert refused.value.code == 403

        # Another certificate of the authority, while a run streams its events.
        run = client.start_run("plain", {"lines": 400})["id"]
        until(lambda: len(client.list_events(run).items) > 10)
        before = expiry(installation.port)
        store_certificate(installation, authority)
        pods = ("-n", installation.namespace, "-l", "app.kubernetes.io/component=api")
        # The kubelet then updates the files at once, and not within a minute or two.
        kubectl("annotate", "pod", *pods, "example.com/changed=now")
        until(lambda: expiry(installation.port) > before)
        second = client.start_run("plain", {"lines": 1})["id"]
        assert wait_ended(client, second)["output"] == {"lines": 1}
        assert wait_ended(client, run)["output"] == {"lines": 400}
        assert lines_of(client.follow_run(run)) == [f"line {number}" for number in range(400)]
        assert [(item["name"], item["size"]) for item in client.list_artifacts(run).items] == [
            ("large.bin", 5_000_000)
        ]

    # Pods accept another authority than the one that signed the certificate.
    other = f"--from-literal=ca.crt={TestAuthority().text}"
    kubectl("-n", installation.namespace, "create", "configmap", OTHER_AUTHORITY, other)
    installation.install(*tls, f'internalTls.caConfigMap="{OTHER_AUTHORITY}"')
    with installation.client(key) as client:
        run = client.start_run("plain", {"lines": 1})["id"]
        ended = wait_ended(client, run)
        assert (ended["status"], ended["error"]["reason"]) == ("failed", "StartTimeout")
        host = f"{installation.prefix}-api.{installation.namespace}.svc:8443"
        assert f"the certificate of {host} is not accepted" in ended["error"]["message"]
        assert ended["started_at"] is None
        assert {event["type"] for event in client.list_events(run).items} == {"run.failed"}
