"""A Prometheus of a test's own: on loopback, in a temporary directory, ended with the test."""

import json
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.monitoring import shipped
from tests.testbed.ports import free_port

WAIT = 120.0
INTERVAL = "1s"


class PrometheusServer:
    """Its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, **query: str) -> Any:
        """The data of an answer. Raises AssertionError with the complaint."""
        address = f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                answered = json.load(answer)
        except urllib.error.HTTPError as error:
            answered = json.load(error)
        assert answered["status"] == "success", (path, query, answered)
        assert not answered.get("warnings"), (query, answered["warnings"])
        return answered["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an instant query."""
        return self.ask("query", query=expression)["result"]

    def until(self, look: Callable[[], Any], what: str) -> Any:
        """Poll `look` until it returns a true value; return it. Raises AssertionError after two minutes."""
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            try:
                seen = look()
            except (OSError, ValueError):
                seen = None
            if seen:
                return seen
            time.sleep(0.5)
        raise AssertionError(f"not after {WAIT:.0f} s: {what}")


def targets(namespace: str) -> list[dict[str, Any]]:
    """What the discovery by EndpointSlices finds of a namespace: Debian's Prometheus is built without it."""
    argv = ["kubectl", "get", "endpointslices,services", "-n", namespace, "-o", "json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    items = json.loads(done.stdout)["items"]
    labels = {
        item["metadata"]["name"]: item["metadata"]["labels"] for item in items if item["kind"] == "Service"
    }
    found = []
    for part in (item for item in items if item["kind"] == "EndpointSlice"):
        service = part["metadata"]["labels"]["kubernetes.io/service-name"]
        for port in part["ports"]:
            for endpoint in part["endpoints"]:
                answered = {
                    "namespace": namespace,
                    "service_name": service,
                    "pod_name": endpoint["targetRef"]["name"],
                    "endpointslice_port_name": port["name"],
                    **{
                        f"service_label_{re.sub('[^a-z]', '_', name)}": value
                        for name, value in labels[service].items()
                    },
                }
                address = f"{endpoint['addresses'][0]}:{port['port']}"
                meta = {f"__meta_kubernetes_{name}": value for name, value in answered.items()}
                found.append({"targets": [address], "labels": meta})
    return found


def configuration() -> dict[str, Any]:
    """The shipped scrape_configs, quicker, and the shipped rules."""
    found = yaml.safe_load((shipped.PLACE / "prometheus.yaml").read_text())
    for scrape in found["scrape_configs"]:
        scrape["scrape_interval"] = scrape["scrape_timeout"] = INTERVAL
        [discovery] = scrape.pop("kubernetes_sd_configs")
        [namespace] = discovery["namespaces"]["names"]
        scrape["static_configs"] = targets(namespace)
    return {"global": {"evaluation_interval": INTERVAL}, "rule_files": ["rules.yaml"], **found}


@contextmanager
def running(directory: Path) -> Iterator[PrometheusServer]:
    """A Prometheus that reads the installed service, by the shipped configuration."""
    (directory / "rules.yaml").write_text(yaml.safe_dump({"groups": shipped.groups()}))
    (directory / "prometheus.yaml").write_text(yaml.safe_dump(configuration()))
    address = f"127.0.0.1:{free_port()}"
    argv = [
        shipped.program("prometheus"),
        f"--config.file={directory / 'prometheus.yaml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=warn",
    ]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log, cwd=directory)
    try:
        found = PrometheusServer(f"http://{address}")
        found.until(lambda: process.poll() is not None or found.ask("status/buildinfo"), "it answers")
        assert process.poll() is None, (directory / "log").read_text()
        yield found
    finally:
        process.terminate()
        process.wait(60)
