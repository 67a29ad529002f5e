"""The process that keeps the node's packet filter in step with the cluster's policies. Run by `up`.

Two things make it work: what it sees of the cluster, and what the plugin of the
container runtime tells, which waits for its answer before a pod's containers
start. An address that belongs to no pod it knows gets nothing through.
"""

import json
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any

from dev.cluster.kube_client import Kube, KubeError
from dev.network_policy import nftables, ruleset
from dev.network_policy.addresses import Addresses, Owner
from dev.network_policy.watcher import Sight, say
from dev.settings import Settings

WAIT = 20.0
_PAUSE = 0.5
_REQUEST_MAX = 65536


class Enforcer:
    """Applies the rules whenever something changed; many changes at once are one."""

    def __init__(self, kube: Kube, addresses: Addresses) -> None:
        self._turn = threading.Condition()
        self._wanted = 1
        self._applied = 0
        self._addresses = addresses
        self._last = ""
        self.sight = Sight(kube, self.changed)

    def changed(self) -> int:
        """Asks for the rules to be made anew; the number to wait for comes back."""
        with self._turn:
            self._wanted += 1
            self._turn.notify_all()
            return self._wanted

    def world(self) -> ruleset.World:
        """All that is known now."""
        seen, given = self.sight.pods(), self._addresses.all()
        pods = {
            address: ruleset.Pod(owner.namespace, seen[owner.uid].labels, address)
            for address, owner in given.items()
            if owner.uid in seen
        }
        # Pods that started before this process was installed are known by their status.
        for one in seen.values():
            if one.address and one.address not in given:
                pods[one.address] = ruleset.Pod(one.namespace, one.labels, one.address)
        return ruleset.World(list(pods.values()), self.sight.namespaces(), self.sight.policies())

    def work(self) -> None:
        """Applies for ever. Until each kind was listed once, what held before goes on to hold."""
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._wanted > self._applied and self.sight.complete, timeout=5)
                if self._wanted == self._applied or not self.sight.complete:
                    continue
                now = self._wanted
            try:
                text = ruleset.text(self.world())
                if text != self._last:
                    nftables.apply(text)
            except Exception as error:  # whatever it is, this thread has no second
                say(f"the rules could not be applied, the last ones hold: {error}")
                time.sleep(_PAUSE)
                continue
            self._last = text
            with self._turn:
                self._applied = max(self._applied, now)
                self._turn.notify_all()

    def _wait(self, number: int) -> bool:
        with self._turn:
            return self._turn.wait_for(lambda: self._applied >= number, timeout=WAIT)

    def answer(self, request: dict[str, Any]) -> str | None:
        """Does what the plugin asks; gives the problem, if there is one."""
        match request["command"]:
            case "ADD":
                return self._add(request)
            case "DEL":
                if self._addresses.take(request["container"]):
                    self.changed()
            case "STATUS":
                closed = sorted(self.sight.problems.items())
                return "; ".join(f"{title} is not expressed: {why}" for title, why in closed) or None
        return None

    def _add(self, request: dict[str, Any]) -> str | None:
        owner = Owner(request["namespace"], request["name"], request["uid"], request["container"])
        if not self._wait(1):
            return "the cluster could not be read yet"
        try:
            if not self.sight.learn(owner.namespace, owner.name, owner.uid):
                return f"there is no pod {owner.namespace}/{owner.name} of uid {owner.uid}"
        except KubeError as error:
            return f"the pod could not be read: {error}"
        for address in request["addresses"]:
            self._addresses.give(address, owner)
        return None if self._wait(self.changed()) else "the rules could not be applied in time"


class Server(socketserver.ThreadingUnixStreamServer):
    """Takes a line of JSON and answers one."""

    daemon_threads = True
    request_queue_size = 256
    enforcer: Enforcer


class Handler(socketserver.StreamRequestHandler):
    """One call of the plugin."""

    timeout = 30

    def handle(self) -> None:
        """Answers it."""
        line = self.rfile.readline(_REQUEST_MAX)
        if not line:
            return  # somebody looked whether we are here
        try:
            assert isinstance(self.server, Server)
            problem = self.server.enforcer.answer(json.loads(line))
        except (ValueError, KeyError, OSError) as error:
            problem = f"{type(error).__name__}: {error}"
        if problem:
            say(problem)
        self.wfile.write(json.dumps({"problem": problem}).encode() + b"\n")


def main(state: str) -> None:
    """Works for ever."""
    settings = Settings(Path(state))
    enforcer = Enforcer(Kube(settings.kubeconfig), Addresses(settings.run / "fences"))
    settings.fences_socket.unlink(missing_ok=True)
    enforcer.sight.start()
    threading.Thread(target=enforcer.work, daemon=True).start()
    with Server(str(settings.fences_socket), Handler) as server:
        server.enforcer = enforcer
        settings.fences_socket.chmod(0o600)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
