"""Upgrade of an installation of an older release with active runs.

`before/` is a recording of the release that first built and ran crews (see
record.py): its CRDs, objects from etcd, index, logs, blobs and API responses.
The test applies the current CRDs, migrates the index and starts the current
API server and controller.
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.store.sql.migrate import migrate
from tests.cluster.upgrade.api_server import TOKEN_KEY, ReleaseApiServer, RunnerClient
from tests.testbed.controlplane import ControlPlane, free_ports, missing_programs

ROOT = Path(__file__).parents[3]
BEFORE = Path(__file__).parent / "before"
KINDS = ("project", "deployment", "run")
RECORDED = json.loads((BEFORE / "told.json").read_text())
OBJECTS = json.loads((BEFORE / "objects.json").read_text())
RUNS = {name: str(run).replace("_", "-", 1) for name, run in RECORDED["runs"].items()}


class UpgradeTestbed:
    """A cluster with the older release's objects and a copy of its data."""

    def __init__(self, plane: ControlPlane, data: Path) -> None:
        self.plane = plane
        self.data = data

    def kubectl(self, *arguments: str) -> str:
        return self.plane.kubectl("-n", "crews", *arguments)

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", f"{kind}.crewyard.dev", name, "-o", "json"))
        return found

    def patch(self, kind: str, name: str, body: dict[str, Any], *more: str) -> str:
        """Apply a merge patch; return the apiserver's error, empty on success."""
        patch = ["patch", f"{kind}.crewyard.dev", name, "--type=merge", "-p", json.dumps(body), *more]
        done = subprocess.run(
            ["kubectl", f"--kubeconfig={self.plane.kubeconfig}", "-n", "crews", *patch],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stderr if done.returncode else ""

    def api_server(self) -> ReleaseApiServer:
        return ReleaseApiServer(
            ROOT, self.data, self.plane.kubeconfig, RECORDED["admin"], RECORDED["admin_key"]
        )


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    if missing_programs():
        pytest.skip(f"not on PATH: {', '.join(missing_programs())}")
    place = tmp_path_factory.mktemp("upgrade")
    data = place / "data"
    shutil.copytree(BEFORE / "data", data)
    with sqlite3.connect(data / "index.sqlite3") as index:
        index.executescript((BEFORE / "index.sql").read_text())
    index.close()
    with ControlPlane(place) as plane:
        plane.kubectl("create", "namespace", "crews")
        for kind in KINDS:
            plane.kubectl("apply", "--server-side", "-f", str(BEFORE / f"{kind}.yaml"))
        plane.wait_established()
        plane.store(OBJECTS)
        secrets = {"apiVersion": "v1", "kind": "List", "items": RECORDED["secrets"]}
        plane.kubectl("-n", "crews", "create", "-f", "-", stdin=json.dumps(secrets))
        one = UpgradeTestbed(plane, data)
        assert one.get("runs", RUNS["working"])["status"]["phase"] == "Running"
        plane.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(ROOT / "crds"))
        plane.wait_established()
        yield one


def test_current_crds_accept_older_objects(testbed):
    """Slow: its fixture starts a control plane; three calls of kubectl for each object."""
    for stored in OBJECTS.values():
        metadata = stored["metadata"]
        kind = f"{stored['kind'].lower()}s"
        found = testbed.get(kind, metadata["name"])
        assert found["metadata"]["uid"] == metadata["uid"]
        assert found["spec"] == stored.get("spec") and found.get("status") == stored.get("status")
        # Any change makes the apiserver validate the whole object with the current CRD.
        assert testbed.patch(kind, metadata["name"], {"metadata": {"labels": {"seen": "yes"}}}) == ""
        touched = {"status": {"observedGeneration": 7}}
        assert testbed.patch(
            kind, metadata["name"], touched, "--subresource=status", "--dry-run=server"
        ) == "" or (found.get("status", {}).get("phase") in ("Succeeded", "Failed", "Canceled"))


@pytest.mark.parametrize(
    ("run", "body", "more", "messages"),
    [
        ("good", {"status": {"phase": "Failed"}}, ["--subresource=status"], "frozen|ended|final"),
        ("good", {"status": None}, ["--subresource=status"], "frozen|ended|final"),
        ("working", {"spec": {"input": {"topic": "other"}}}, [], "immutable"),
        ("working", {"status": {"claim": {"podUid": "x"}}}, ["--subresource=status"], "written once"),
        ("working", {"status": {"pod": {"uid": "x"}}}, ["--subresource=status"], "written once"),
    ],
)
def test_frozen_rules_hold_for_older_objects(testbed, run, body, more, messages):
    answer = testbed.patch("runs", RUNS[run], body, *more)
    assert any(word in answer for word in messages.split("|")), answer


def test_older_runs_accept_allowed_writes(testbed):
    writes = ["--subresource=status", "--dry-run=server"]
    assert testbed.patch("runs", RUNS["working"], {"status": {"phase": "Failed"}}, *writes) == ""
    assert testbed.patch("runs", RUNS["queued"], {"spec": {"cancel": True}}, "--dry-run=server") == ""


def assert_includes(old_value: Any, now: Any, path: str) -> None:
    """Assert that the new value includes the old one; additions are allowed."""
    if isinstance(old_value, dict):
        assert isinstance(now, dict), path
        for name, value in old_value.items():
            assert name in now, f"{path}.{name}"
            assert_includes(value, now[name], f"{path}.{name}")
    elif isinstance(old_value, list):
        assert isinstance(now, list) and len(old_value) == len(now), f"{path}: {old_value} {now}"
        for place, (old, new) in enumerate(zip(old_value, now, strict=True)):
            assert_includes(old, new, f"{path}[{place}]")
    else:
        assert old_value == now, f"{path}: {old_value} {now}"


def test_migration_loses_no_row(tmp_path):
    file = tmp_path / "index.sqlite3"
    with sqlite3.connect(file) as index:
        index.executescript((BEFORE / "index.sql").read_text())
    before = rows(file)
    migrate(file)
    after = rows(file)
    assert {"projects", "deployments", "runs", "claims", "api_keys", "artifacts"} <= {
        table for table, count in before.items() if count
    }
    # A run of a deleted project was a hidden row; now a tombstone records its name.
    assert after["runs"] == before["runs"] - 1 and after["tombstones"] == 1
    changed = {table for table, count in before.items() if after[table] != count}
    assert changed <= {"runs", "alembic_version"}


def rows(file: Path) -> dict[str, int]:
    """Return the number of rows of each table."""
    with sqlite3.connect(file) as index:
        names = [name for (name,) in index.execute("select name from sqlite_master where type = 'table'")]
        return {name: index.execute(f"select count(*) from {name}").fetchone()[0] for name in names}


# Depends on the time, or on a Secret that the test recreated.
_VOLATILE_FIELDS = ("last_used_at", "updated_at")


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_volatile(one) for name, one in value.items() if name not in _VOLATILE_FIELDS}
    return [without_volatile(one) for one in value] if isinstance(value, list) else value


def test_current_service_continues_older_runs(testbed):
    """Slow: starts a control plane, API server and controller."""
    with testbed.api_server() as server:
        for path, old_value in RECORDED["answers"].items():
            accept = {"Accept": "application/json"} if path.endswith("/events") else {}
            now = server.data_of("GET", path, **accept)
            assert_includes(without_volatile(old_value), without_volatile(now), path)
        status, found = server.call("GET", f"/v1/runs/{RECORDED['runs']['good']}/artifacts/report.md")
        assert (status, found) == (200, b"# Tides\n")
        assert server.call("GET", "/v1/runs/run_of-gone")[0] == 404

        # An older key keeps its scope and project; a name executes once, even without its project.
        team = RECORDED["key"]["key"]
        assert server.call("GET", f"/v1/runs/{RECORDED['runs']['good']}", key=team)[0] == 200
        assert server.call("POST", "/v1/projects", {"name": "other"}, key=team)[0] == 403

        # The runner that had claimed repeats the claim, sends more events and ends.
        pod = RECORDED["pods"][RECORDED["runs"]["working"]]
        working = RunnerClient(server, RECORDED["runs"]["working"], pod["uid"], pod["token"])
        again = working.post("claim")
        assert again[0] == 200
        assert_includes(RECORDED["granted"], again[1], "claim")
        assert (
            RunnerClient(server, working.run, working.uid, working.token, "another").post("claim")[1]["state"]
            == "refused"
        )
        assert working.post_logs(2, "highest")[1] == {"acknowledged": 2}
        assert working.post_result("succeeded", 2, {"tide": "high"}, (1, len(b"# Draft\n"))) == 200
        assert testbed.get("runs", RUNS["working"])["status"]["result"]["outcome"] == "succeeded"

        # A queued run is claimed after the upgrade.
        pod = RECORDED["pods"][RECORDED["runs"]["queued"]]
        queued = RunnerClient(server, RECORDED["runs"]["queued"], pod["uid"], pod["token"])
        assert queued.post("claim")[1]["input"] == {"topic": "queued"}
        assert queued.post_logs(1, "at last")[0] == 200 and queued.post_result("succeeded", 1, "done") == 200

        with ControllerSubprocess(testbed, server) as controller:
            for run, output in (("working", {"tide": "high"}), ("queued", "done")):
                ended = server.wait_for(
                    f"/v1/runs/{RECORDED['runs'][run]}",
                    lambda seen: controller.is_running() and seen["completed_at"] is not None,
                )
                assert (ended["status"], ended["output"]) == ("succeeded", output)
        path = f"/v1/runs/{working.run}/events"
        events = server.data_of("GET", path, Accept="application/json")
        types = [event["type"] for event in events]
        assert types == ["run.started", "log", "artifact", "log", "run.completed"]
        assert [event["id"] for event in events] == [1, 2, 3, 4, 5]
        assert_includes(RECORDED["answers"][path], events[:3], path)


class ControllerSubprocess:
    """The current controller as a process on the same cluster."""

    def __init__(self, testbed: UpgradeTestbed, server: ReleaseApiServer) -> None:
        self.log = testbed.data.parent / "controller.log"
        image = f"registry.example.com/x@sha256:{'2' * 64}"
        self.environment = {
            "KUBECONFIG": str(testbed.plane.kubeconfig),
            "CREWYARD_NAMESPACE": "crews",
            "CREWYARD_TOKEN_KEY": TOKEN_KEY,
            "CREWYARD_INTERNAL_URL": server.url,
            "CREWYARD_SERVICE_IMAGE": image,
            "CREWYARD_KANIKO_IMAGE": image,
            "CREWYARD_BASE_IMAGES": json.dumps({"3.11": image}),
            "CREWYARD_REGISTRY": "registry.example.com",
            "CREWYARD_CONTROLLER_PORT": str(free_ports(1)[0]),
        }

    def __enter__(self) -> "ControllerSubprocess":
        self.output = self.log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "controller"],
            cwd=ROOT,
            env={**os.environ, **self.environment},
            stdout=self.output,
            stderr=self.output,
        )
        return self

    def is_running(self) -> bool:
        """Return True; fail with the end of the log if the process exited."""
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        return True

    def __exit__(self, *_: Any) -> None:
        self.process.terminate()
        try:
            self.process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=120)
        self.output.close()
