"""Records the data of a release for the test that upgrades it.

`python -m tests.cluster.upgrade.record TREE TARGET` with TREE a checkout of
the release (`git worktree add TREE COMMIT`): runs its API server on a private
control plane, uses it through its API and kubectl, and stops it during active
runs. TARGET gets its CRDs, the objects from etcd, the index as SQL, the other
files of its data directory, and the API's responses.
"""

import hashlib
import json
import shutil
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from crds import api_keys, pod_tokens
from tests.cluster.upgrade.api_server import TOKEN_KEY, ReleaseApiServer, RunnerClient
from tests.testbed.controlplane import ControlPlane

KINDS = ("project", "deployment", "run")
PREFIX = "/registry/crewyard.dev/"
# A token that does not expire before the test runs.
_NEVER = 4_000_000_000
_WHEN = "2026-11-21T10:00:00Z"
_IMAGE = f"registry.example.com/crews/research@sha256:{'1' * 64}"


class ReleaseRecording:
    """One installation of the older release, with objects in every state."""

    def __init__(self, plane: ControlPlane, server: ReleaseApiServer) -> None:
        self.plane = plane
        self.server = server
        self.pods: dict[str, dict[str, str]] = {}

    def status(self, kind: str, name: str, **status: Any) -> None:
        """Write a status as the controller does."""
        self.plane.kubectl(
            "-n", "crews", "patch", f"{kind}.crewyard.dev", name, "--subresource=status", "--type=merge",
            "-p", json.dumps({"status": status}),
        )  # fmt: skip

    def pod(self, run: str) -> RunnerClient:
        """Return a client for the pod of a run, with its token."""
        name = run.replace("_", "-", 1)
        path = "jsonpath={.metadata.uid}"
        uid = self.plane.kubectl("-n", "crews", "get", "runs.crewyard.dev", name, "-o", path)
        token = pod_tokens.mint(TOKEN_KEY, "run", "crews", name, uid, _NEVER)
        self.pods[run] = {"uid": uid, "token": token}
        return RunnerClient(self.server, run, uid, token)

    def deployment(self, order: int) -> str:
        """Create a built deployment from an upload."""
        archive = b"an archive of the crew"
        server = self.server
        ticket = server.data_of("POST", "/v1/uploads", {"project": "research", "size": len(archive)})
        address = ticket["upload_url"].removeprefix("http://yard.example")
        assert server.call("PUT", address, archive)[0] in (200, 201, 204)
        body = {"project": "research", "build_context_url": ticket["build_context_url"], "message": "First"}
        made = server.data_of("POST", "/v1/deployments", body)["id"]
        name = made.replace("_", "-", 1)
        built = {
            "type": "Built",
            "status": "True",
            "reason": "Built",
            "message": "",
            "lastTransitionTime": _WHEN,
        }
        self.status(
            "deployments", name, phase="Active", image=_IMAGE, order=order, conditions=[built],
            plan={"framework": "python", "entrypoint": "main:kickoff", "python": "3.11"},
        )  # fmt: skip
        self.status("projects", "research", activeDeployment=name, activatedAt=_WHEN, lastOrder=order)
        return str(made)

    def ended(self, run: str, phase: str, **status: Any) -> None:
        """End a run as the controller does."""
        self.status(
            "runs", run.replace("_", "-", 1), phase=phase, completionTime=_WHEN, durationMs=1500, **status
        )
        self.server.wait_for(f"/v1/runs/{run}", lambda seen: seen["completed_at"] is not None)

    def orphan(self, project: str, name: str) -> None:
        """Create a run with kubectl, owned by its project as the controller sets it."""
        uid = self.plane.kubectl("-n", "crews", "get", "cproj", project, "-o", "jsonpath={.metadata.uid}")
        version = "crewyard.dev/v1alpha1"
        owner = {"apiVersion": version, "kind": "Project", "name": project, "uid": uid}
        metadata = {"name": name, "namespace": "crews", "ownerReferences": [owner]}
        run = {"apiVersion": version, "kind": "Run", "metadata": metadata, "spec": {"project": project}}
        self.plane.kubectl("create", "-f", "-", stdin=json.dumps(run))

    def play(self) -> dict[str, Any]:
        """Play the whole scenario; return what the test needs."""
        server = self.server
        server.data_of("POST", "/v1/projects", {"name": "research", "plan": "pro"})
        server.data_of("PUT", "/v1/projects/research/env", {"variables": {"TIDES": "spring"}})
        first = self.deployment(1)
        second = self.deployment(2)
        self.status("deployments", first.replace("_", "-", 1), phase="Superseded")
        common = {"deployment": "research", "input": {"topic": "tides"}}
        server.wait_for(f"/v1/deployments/{second}", lambda seen: seen["status"] == "active")
        runs = {}
        for name in ("good", "bad", "working", "queued", "canceled"):
            body = {**common, "input": {"topic": name}}
            runs[name] = server.data_of("POST", "/v1/runs", body, Idempotency_Key=f"key-of-{name}")["id"]

        good = self.pod(runs["good"])
        assert good.post("claim")[1]["state"] == "granted"
        assert good.post_logs(1, "high water", "low water")[0] == 200
        report = b"# Tides\n"
        assert good.put_artifact("report.md", report, hashlib.sha256(report).hexdigest()) == 200
        assert good.post_result("succeeded", 2, {"answer": 42}, (1, len(report))) == 200
        self.ended(runs["good"], "Succeeded", startTime=_WHEN)

        bad = self.pod(runs["bad"])
        assert bad.post("claim")[1]["state"] == "granted"
        assert bad.post_logs(1, "no water")[0] == 200 and bad.post_result("failed", 1) == 200
        error = {"reason": "CrewError", "message": "ValueError: no tides today"}
        self.ended(runs["bad"], "Failed", startTime=_WHEN, error=error)

        working = self.pod(runs["working"])
        granted = working.post("claim")[1]
        assert granted["state"] == "granted" and working.post_logs(1, "still rising")[0] == 200
        assert working.put_artifact("draft.md", b"# Draft\n", hashlib.sha256(b"# Draft\n").hexdigest()) == 200
        pod = {"name": working.name, "uid": f"pod of {working.name}"}
        self.status(
            "runs",
            working.name,
            phase="Running",
            startTime=_WHEN,
            pod=pod,
            deployment=second.replace("_", "-", 1),
        )
        self.pod(runs["queued"])
        self.status("runs", runs["queued"].replace("_", "-", 1), phase="Pending")
        server.data_of("POST", f"/v1/runs/{runs['canceled']}/cancel", {})
        self.ended(runs["canceled"], "Canceled")

        server.data_of("POST", "/v1/projects", {"name": "gone"})
        self.orphan("gone", "run-of-gone")
        server.wait_for("/v1/runs/run_of-gone", lambda seen: True)
        assert server.call("DELETE", "/v1/projects/gone")[0] == 204
        self.plane.kubectl(
            "-n", "crews", "wait", "runs.crewyard.dev/run-of-gone", "--for=delete", "--timeout=60s"
        )
        key = server.data_of(
            "POST", "/v1/api-keys", {"name": "a team's", "scopes": ["run"], "projects": ["research"]}
        )
        time.sleep(3)
        return {
            "runs": runs,
            "pods": self.pods,
            "granted": granted,
            "deployments": [first, second],
            "key": key,
        }

    def secrets(self) -> list[dict[str, Any]]:
        """Return the variable Secrets for re-creation: etcd does not store them as JSON."""
        found = json.loads(self.plane.kubectl("-n", "crews", "get", "secrets", "-o", "json"))["items"]
        for one in found:
            one["metadata"] = {"name": one["metadata"]["name"], "labels": one["metadata"].get("labels", {})}
        return list(found)

    def responses(self, recorded: dict[str, Any]) -> dict[str, Any]:
        """Return the API's responses for all of that."""
        paths = [
            "/v1/projects",
            "/v1/projects/research",
            "/v1/projects/research/env",
            "/v1/runs",
            "/v1/deployments?project=research",
        ]
        paths += ["/v1/api-keys", "/v1/runs?status=running"]
        paths += [f"/v1/deployments/{deployment}" for deployment in recorded["deployments"]]
        for run in recorded["runs"].values():
            paths += [f"/v1/runs/{run}", f"/v1/runs/{run}/artifacts"]
        found = {path: self.server.data_of("GET", path) for path in paths}
        for run in recorded["runs"].values():
            path = f"/v1/runs/{run}/events"
            found[path] = self.server.data_of("GET", path, Accept="application/json")
        return found


def write(target: Path, tree: Path, data: Path, stored: dict[str, Any], recorded: dict[str, Any]) -> None:
    """Write the recording as text files, except what the release itself compresses."""
    for kind in KINDS:
        shutil.copyfile(tree / "crds" / f"{kind}.yaml", target / f"{kind}.yaml")
    with sqlite3.connect(data / "index.sqlite3") as index:
        index.execute("pragma wal_checkpoint(truncate)")
        (target / "index.sql").write_text("\n".join(index.iterdump()) + "\n")
    for path in sorted(data.rglob("*")):
        if path.is_file() and not path.name.startswith("index.sqlite3") and path.name != "lock":
            copy = target / "data" / path.relative_to(data)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    for name, value in (("objects.json", stored), ("told.json", recorded)):
        (target / name).write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")


def main(tree: Path, target: Path) -> None:
    """Record one release."""
    drawn = api_keys.generate()
    admin = {"id": drawn.key_id, "hash": drawn.hash, "scopes": ["admin"], "plan": "enterprise"}
    with tempfile.TemporaryDirectory() as place, ControlPlane(Path(place)) as plane:
        plane.kubectl("create", "namespace", "crews")
        for kind in KINDS:
            plane.kubectl("apply", "--server-side", "-f", str(tree / "crds" / f"{kind}.yaml"))
        plane.wait_established()
        data = Path(place, "data")
        with ReleaseApiServer(tree, data, plane.kubeconfig, admin, drawn.text) as server:
            recording = ReleaseRecording(plane, server)
            recorded = recording.play()
            recorded |= {"answers": recording.responses(recorded), "admin": admin, "admin_key": drawn.text}
            recorded["secrets"] = recording.secrets()
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        write(target, tree, data, plane.stored_objects(PREFIX), recorded)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
