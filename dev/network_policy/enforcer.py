"""Network policy enforcer: applies the cluster's policies to the node's packet filter. Started by `up`.

It combines a watch of the cluster with the reports of the CNI plugin, which waits for a response before a
pod's containers start. An address without a known pod is blocked.
"""

import json
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dev.cluster.kube_client import HttpKubeApi, KubeApiError
from dev.network_policy import nftables, ruleset
from dev.network_policy.addresses import Addresses, AddressOwner
from dev.network_policy.watcher import PolicyWatcher, log
from dev.settings import Settings

APPLY_TIMEOUT_SECONDS = 20.0
_RETRY_SECONDS = 0.5
_MAX_REQUEST_BYTES = 65536


class Enforcer:
    """Applies the rules after every change; batches concurrent changes."""

    def __init__(self, kube: HttpKubeApi, addresses: Addresses) -> None:
        self._condition = threading.Condition()
        self._requested = 1
        self._applied = 0
        self._addresses = addresses
        self._applied_text = ""
        self.watcher = PolicyWatcher(kube, self.request_apply)

    def request_apply(self) -> int:
        """Request new rules; return the number to wait for."""
        with self._condition:
            self._requested += 1
            self._condition.notify_all()
            return self._requested

    def snapshot(self) -> ruleset.ClusterSnapshot:
        """Return the current state of pods, namespaces and policies."""
        watched, owners = self.watcher.pods(), self._addresses.owners()
        pods = {
            address: ruleset.AddressedPod(owner.namespace, watched[owner.uid].labels, address)
            for address, owner in owners.items()
            if owner.uid in watched
        }
        # The status has the addresses of pods that started before this process was installed.
        for pod in watched.values():
            if pod.address and pod.address not in owners:
                pods[pod.address] = ruleset.AddressedPod(pod.namespace, pod.labels, pod.address)
        return ruleset.ClusterSnapshot(
            list(pods.values()), self.watcher.namespaces(), self.watcher.policies()
        )

    def run(self) -> None:
        """Apply changes without end. The previous rules stay until each kind has been listed once."""
        while True:
            with self._condition:
                self._condition.wait_for(
                    lambda: self._requested > self._applied and self.watcher.complete, timeout=5
                )
                if self._requested == self._applied or not self.watcher.complete:
                    continue
                request_number = self._requested
            try:
                text = ruleset.text(self.snapshot())
                if text != self._applied_text:
                    nftables.apply(text)
            except Exception as error:  # nothing restarts this thread
                log(f"the rules could not be applied, the previous ones stay in force: {error}")
                time.sleep(_RETRY_SECONDS)
                continue
            self._applied_text = text
            with self._condition:
                self._applied = max(self._applied, request_number)
                self._condition.notify_all()

    def _wait_applied(self, number: int) -> bool:
        with self._condition:
            return self._condition.wait_for(lambda: self._applied >= number, timeout=APPLY_TIMEOUT_SECONDS)

    def handle_request(self, request: dict[str, Any]) -> str | None:
        """Handle a request of the plugin; return the problem, if there is one."""
        match request["command"]:
            case "ADD":
                return self._add(request)
            case "DEL":
                if self._addresses.release(request["container"]):
                    self.request_apply()
            case "STATUS":
                unsupported = sorted(self.watcher.problems.items())
                return (
                    "; ".join(f"{title} is not supported: {reason}" for title, reason in unsupported) or None
                )
        return None

    def _add(self, request: dict[str, Any]) -> str | None:
        owner = AddressOwner(request["namespace"], request["name"], request["uid"], request["container"])
        if not self._wait_applied(1):
            return "the cluster has not been listed yet"
        try:
            if not self.watcher.ensure_known(owner.namespace, owner.name, owner.uid):
                return f"pod {owner.namespace}/{owner.name} with uid {owner.uid} does not exist"
        except KubeApiError as error:
            return f"the pod could not be read: {error}"
        for address in request["addresses"]:
            self._addresses.assign(address, owner)
        return None if self._wait_applied(self.request_apply()) else "the rules could not be applied in time"


class EnforcerServer(socketserver.ThreadingUnixStreamServer):
    """Accepts one line of JSON per connection and returns one."""

    daemon_threads = True
    request_queue_size = 256
    enforcer: Enforcer


class EnforcerHandler(socketserver.StreamRequestHandler):
    """One call of the plugin."""

    timeout = 30

    def handle(self) -> None:
        """Handle the call."""
        line = self.rfile.readline(_MAX_REQUEST_BYTES)
        if not line:
            return  # a readiness probe
        try:
            assert isinstance(self.server, EnforcerServer)
            problem = self.server.enforcer.handle_request(json.loads(line))
        except (ValueError, KeyError, OSError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            log(problem)
        self.wfile.write(json.dumps({"problem": problem}).encode() + b"\n")


def main(state: str) -> None:
    """Run the enforcer without end."""
    settings = Settings(Path(state))
    enforcer = Enforcer(HttpKubeApi(settings.kubeconfig), Addresses(settings.run / "fences"))
    settings.network_policy_socket.unlink(missing_ok=True)
    enforcer.watcher.start()
    threading.Thread(target=enforcer.run, daemon=True).start()
    with EnforcerServer(str(settings.network_policy_socket), EnforcerHandler) as server:
        server.enforcer = enforcer
        settings.network_policy_socket.chmod(0o600)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
