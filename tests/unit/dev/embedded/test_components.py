"""Process configuration: local addresses only, all paths below the state directory."""

import json
import re
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from dev.embedded.components import (
    apiserver,
    containerd,
    controller_manager,
    etcd,
    kube_proxy,
    kubelet,
    object_store,
    postgresql,
    redis,
    scheduler,
)
from dev.net import dns, pki
from dev.process import command
from dev.process.program import ProcessSpec
from dev.registry import server, token_server
from dev.settings import BRIDGE_ADDRESS, REGISTRY, Settings

SETTINGS = Settings(Path("/srv/yard"))
PAUSE = f"{REGISTRY}/crewyard/pause@sha256:{'0' * 64}"
ALL: list[ProcessSpec] = [
    etcd.process_spec(SETTINGS),
    apiserver.process_spec(SETTINGS),
    controller_manager.process_spec(SETTINGS),
    scheduler.process_spec(SETTINGS),
    kubelet.process_spec(SETTINGS),
    kube_proxy.process_spec(SETTINGS),
    containerd.process_spec(SETTINGS, PAUSE, 1500, {}),
    server.process_spec(SETTINGS, "secret"),
    token_server.process_spec(SETTINGS),
    dns.process_spec(SETTINGS),
    postgresql.process_spec(SETTINGS),
    redis.process_spec(SETTINGS, "secret"),
    object_store.process_spec(SETTINGS, Path("/srv/yard/bin/versitygw"), "secret"),
]


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_nothing_listens_on_all_addresses(program: ProcessSpec) -> None:
    text = " ".join([*program.argv, *program.files.values()])
    assert "0.0.0.0:" not in text and '"0.0.0.0"' not in text.replace('"dst": "0.0.0.0/0"', "")
    for address in re.findall(r"(?<![\d.])(\d{1,3}(?:\.\d{1,3}){3}):\d+", text):
        assert address in ("127.0.0.1", BRIDGE_ADDRESS)


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_files_are_written_only_below_the_state_directory(program: ProcessSpec) -> None:
    assert all(path.is_relative_to(SETTINGS.state) for path in program.files)


def test_containerd_has_separate_directories() -> None:
    file = tomllib.loads(containerd.configuration(SETTINGS, PAUSE))
    cri = file["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["sandbox_image"] == PAUSE
    assert cri["restrict_oom_score_adj"] and cri["netns_mounts_under_state_dir"]
    own = [file["root"], file["state"], file["grpc"]["address"], cri["registry"]["config_path"]]
    assert all(path.startswith("/srv/yard/") for path in own)


def test_containerd_finds_the_registry_by_its_one_name() -> None:
    program = containerd.process_spec(
        SETTINGS, PAUSE, 1500, {"HTTPS_PROXY": "http://p.example.org:3128", "HOME": "/x"}
    )
    hosts = program.files[SETTINGS.configuration / "registries" / REGISTRY / "hosts.toml"]
    assert tomllib.loads(hosts)["server"] == f"http://{BRIDGE_ADDRESS}:5000"
    assert program.environment["HTTPS_PROXY"] == "http://p.example.org:3128"
    assert BRIDGE_ADDRESS in program.environment["NO_PROXY"]
    assert "HOME" not in program.environment


def test_pods_get_the_mtu_of_the_default_route() -> None:
    assert json.loads(containerd.network(SETTINGS, 1460))["plugins"][0]["mtu"] == 1460


def test_kubelet_limits_processes_and_works_on_both_kinds_of_cgroups() -> None:
    config = kubelet.configuration(SETTINGS)
    assert config["podPidsLimit"] == 1024
    assert config["failCgroupV1"] is False
    assert config["cgroupRoot"] == "/crewyard"
    assert config["authorization"] == {"mode": "Webhook"}


def test_node_ports_answer_on_loopback_only() -> None:
    assert kube_proxy.configuration(SETTINGS)["nodePortAddresses"] == ["127.0.0.0/8"]


def test_kubeadms_file_is_two_documents() -> None:
    documents = [json.loads(text) for text in pki.configuration(Path("/srv/yard/pki")).split("\n---\n")]
    assert [document["kind"] for document in documents] == ["InitConfiguration", "ClusterConfiguration"]
    assert documents[1]["certificatesDir"] == "/srv/yard/pki"


def test_databases_are_served_by_the_version_that_made_them(tmp_path: Path) -> None:
    data = postgresql.directory(Settings(tmp_path)) / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    assert "/usr/lib/postgresql/9/bin/postgres" in postgresql.process_spec(Settings(tmp_path)).argv


class FakeInitdb:
    """Creates the files of initdb in their order, until `ends_after` of them exist."""

    def __init__(self, place: Path, ends_after: int) -> None:
        self._place, self._ends_after = place, ends_after
        self.calls = 0

    def __call__(self, argv: Sequence[str], seconds: float) -> str:
        self.calls += 1
        (pgdata,) = [Path(part.partition("=")[2]) for part in argv if part.startswith("--pgdata=")]
        data = self._place / pgdata.name
        data.mkdir()
        for number, name in enumerate(("PG_VERSION", "pg_hba.conf", "postgresql.conf")):
            if number == self._ends_after:
                raise KeyboardInterrupt
            (data / name).write_text("15\n" if name == "PG_VERSION" else "# made by initdb\n")
        return ""


def test_databases_of_a_killed_initdb_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(tmp_path)
    place = postgresql.directory(settings)
    monkeypatch.setattr(shutil, "chown", lambda *_: None)
    monkeypatch.setattr(command, "read_output", FakeInitdb(place, 1))
    with pytest.raises(KeyboardInterrupt):
        postgresql.ensure(settings, "word")
    monkeypatch.setattr(command, "read_output", FakeInitdb(place, 3))
    postgresql.ensure(settings, "word")
    assert (place / "data" / "postgresql.conf").exists()
    assert (place / "data" / "pg_hba.conf").read_text().endswith("10.213.0.0/16 scram-sha-256\n")
    assert [path.name for path in place.iterdir()] == ["data"]


def test_complete_databases_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(tmp_path)
    data = postgresql.directory(settings) / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("15\n")
    initdb = FakeInitdb(data.parent, 3)
    monkeypatch.setattr(shutil, "chown", lambda *_: None)
    monkeypatch.setattr(command, "read_output", initdb)
    postgresql.ensure(settings, "word")
    assert initdb.calls == 0
    # An earlier version let initdb write into `data` itself, and deleted the password's file at the end.
    (data.parent / "password").touch()
    postgresql.ensure(settings, "word")
    assert initdb.calls == 1 and (data / "postgresql.conf").exists()


@pytest.mark.parametrize(
    ("stamp", "now", "expected"),
    [
        ("abc 1000", 1000, True),
        ("abc 1000", 1000 + 299 * 86400, True),
        ("abc 1000", 1000 + 301 * 86400, False),
        ("abc 1000", 10, False),
        ("xyz 1000", 1000, False),
        ("abc", 1000, False),
        ("", 1000, False),
    ],
)
def test_certificates_are_renewed_before_they_end(stamp: str, now: float, expected: bool) -> None:
    assert pki.is_current(stamp, "abc", now) is expected
