"""Process that writes the names of the cluster's Services for dnsmasq. Started by `up`.

Lists, then watches; on every change it writes the hosts file and sends SIGHUP to dnsmasq, which then reloads
it.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from dev import files
from dev.cluster.kube_client import HttpKubeApi, KubeApiError
from dev.net import dns
from dev.process import program
from dev.process.program import ProcessSpec
from dev.settings import REPOSITORY, Settings

_WATCH_SECONDS = 300
_MAX_RETRY_SECONDS = 5.0
_PATH = "/api/v1/services"


def apply_event(services: dict[str, dict[str, Any]], event: dict[str, Any]) -> bool:
    """Apply a watch event to the Services. Raises KubeApiError for an error, such as an old version."""
    kind, item = event["type"], event["object"]
    if kind == "ERROR":
        raise KubeApiError(int(item.get("code") or 0), str(item.get("message")))
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        return False
    uid = item["metadata"]["uid"]
    if kind == "DELETED":
        services.pop(uid, None)
    else:
        services[uid] = item
    return True


def publish(settings: Settings, text: str) -> None:
    """Write `text` to the hosts file, and reload dnsmasq if it changed."""
    file = settings.service_hosts
    if file.exists() and file.read_text() == text:
        return
    files.write(file, text)
    record = program.running(settings, "dns")
    if record:
        os.kill(record.pid, signal.SIGHUP)


def list_and_watch(settings: Settings, kube: HttpKubeApi) -> None:
    """List once, then watch until the watch ends. Raises KubeApiError."""
    listing = kube.call("GET", _PATH)
    services = {item["metadata"]["uid"]: item for item in listing["items"]}
    publish(settings, dns.service_hosts(services.values()))
    version = listing["metadata"]["resourceVersion"]
    query = (
        f"{_PATH}?watch=1&allowWatchBookmarks=true&timeoutSeconds={_WATCH_SECONDS}&resourceVersion={version}"
    )
    for line in kube.lines(query, _WATCH_SECONDS + 30):
        if apply_event(services, json.loads(line)):
            publish(settings, dns.service_hosts(services.values()))


def main(state: str) -> None:
    """Watch without end, with a growing delay after each error."""
    settings = Settings(Path(state))
    kube = HttpKubeApi(settings.kubeconfig)
    retry = 0.1
    while True:
        try:
            list_and_watch(settings, kube)
            retry = 0.1
        except Exception as error:  # nothing restarts this process
            print(f"services: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            time.sleep(retry)
            retry = min(retry * 2, _MAX_RETRY_SECONDS)


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts; its fingerprint includes the code."""
    code = "".join(
        (REPOSITORY / "dev" / name).read_text()
        for name in ("net/service_names.py", "net/dns.py", "cluster/kube_client.py")
    )
    return ProcessSpec(
        name="services",
        argv=(sys.executable, "-m", "dev.net.service_names", str(settings.state)),
        files={settings.run / "services.code": code},
        cwd=REPOSITORY,
        probe=None,
        grace_seconds=2,
    )


if __name__ == "__main__":
    main(sys.argv[1])
