"""Kernel settings, routes, mounts and cgroups: changes and their removal."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dev.embedded import cgroups, sysctls
from dev.embedded.host_cleanup import mounts_below
from dev.errors import DevClusterError
from dev.net import bridge
from dev.settings import Settings


def test_only_settings_that_differ_are_written() -> None:
    current = {"net/ipv4/ip_forward": 0, "fs/inotify/max_user_watches": 8, "vm/overcommit_memory": 0}
    assert sysctls.changes(current) == {"net/ipv4/ip_forward": 1, "fs/inotify/max_user_watches": 524288}


def test_a_higher_limit_is_never_lowered() -> None:
    assert sysctls.changes({"fs/inotify/max_user_instances": 9999, "net/ipv4/ip_forward": 1}) == {}


def test_settings_are_read_and_written_as_files(tmp_path: Path) -> None:
    for name in ("net/ipv4/ip_forward", "kernel/panic"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("0\n")
    assert sysctls.read(tmp_path) == {"net/ipv4/ip_forward": 0, "kernel/panic": 0}
    sysctls.write({"kernel/panic": 10}, tmp_path)
    assert sysctls.read(tmp_path)["kernel/panic"] == 10


def test_the_first_value_of_each_setting_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(tmp_path)
    settings.run.mkdir(parents=True)
    written: list[dict[str, int]] = []
    monkeypatch.setattr(sysctls, "write", written.append)
    forward, panic = "net/ipv4/ip_forward", "kernel/panic"
    for values in ({forward: 0}, {forward: 1, panic: 0}, {panic: 10}):
        monkeypatch.setattr(sysctls, "read", values.copy)
        sysctls.apply(settings)
    recorded = json.loads((settings.run / "sysctls.json").read_text())
    assert recorded == {forward: 0, panic: 0}
    assert written == [{forward: 1}, {}, {}]


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ({"dst": "default", "dev": "eth0"}, None),
        ({"dst": "192.0.2.0/24", "dev": "eth0"}, None),
        ({"dst": "10.213.0.0/16", "dev": "crewyard0"}, None),
        ({"dst": "10.213.4.0/24", "dev": "tun0"}, "10.213.4.0/24"),
        ({"dst": "10.214.0.7", "dev": "tun0"}, "10.214.0.7"),
        ({"dst": "10.0.0.0/8", "dev": "tun0"}, None),
    ],
)
def test_foreign_networks_within_the_clusters_are_a_conflict(
    route: dict[str, Any], expected: str | None
) -> None:
    assert bridge.conflict([route]) == expected


def test_all_next_hops_of_a_route_are_considered() -> None:
    several = {"dst": "default", "nexthops": [{"dev": "eth1"}, {"dev": "eth0"}]}
    assert bridge.devices([several, {"dst": "default", "dev": "eth1"}]) == ["eth0", "eth1"]
    assert bridge.devices([{"type": "unreachable", "dst": "default"}]) == []


def test_mounts_below_are_listed_deepest_first() -> None:
    points = ["/", "/srv/yard/run/a", "/srv/yard/run/a/rootfs", "/srv/yardstick", "/srv/yard/two\\040words"]
    text = "\n".join(f"1 2 0:1 / {point} rw - tmpfs tmpfs rw" for point in points)
    assert mounts_below(text, Path("/srv/yard")) == [
        "/srv/yard/run/a/rootfs",
        "/srv/yard/run/a",
        "/srv/yard/two words",
    ]


def test_cgroup_v1_has_a_group_per_tree(tmp_path: Path) -> None:
    for tree in ("cpu", "memory"):
        (tmp_path / tree).mkdir()
        (tmp_path / tree / "cgroup.procs").write_text("")
    cgroups.make(tmp_path)
    assert sorted(path.parent.name for path in tmp_path.glob("*/crewyard")) == ["cpu", "memory"]
    (tmp_path / "cpu" / "crewyard" / "cgroup.procs").write_text("11\n12\n")
    (tmp_path / "memory" / "crewyard" / "pod").mkdir()
    (tmp_path / "memory" / "crewyard" / "pod" / "cgroup.procs").write_text("12\n13\n")
    assert cgroups.members(tmp_path) == {11, 12, 13}


def test_all_pods_together_have_the_processors_of_a_node(tmp_path: Path) -> None:
    (tmp_path / "cpu" / "crewyard").mkdir(parents=True)
    (tmp_path / "cpu" / "cgroup.procs").write_text("")
    (tmp_path / "cpu" / "crewyard" / "cpu.shares").write_text("1024")
    cgroups.make(tmp_path)
    shares = (tmp_path / "cpu" / "crewyard" / "cpu.shares").read_text()
    assert int(shares) == 1024 * (os.cpu_count() or 1)


def test_cgroup_v2_has_one_group_with_its_controllers_on(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory rdma\n")
    (tmp_path / "cgroup.subtree_control").write_text("")
    cgroups.make(tmp_path)
    assert (tmp_path / "crewyard").is_dir()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +memory"
    assert not (tmp_path / "crewyard" / "cpu").exists()


def test_the_processes_of_a_containers_root_group_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses memory where processes are, and their move where it has accepted cpu alone."""
    processes, enabled = tmp_path / "cgroup.procs", tmp_path / "cgroup.subtree_control"
    write = Path.write_text

    def kernel(path: Path, text: str) -> int:
        if path == enabled and "+memory" in text and processes.read_text():
            raise OSError(errno.EOPNOTSUPP if enabled.exists() else errno.EBUSY, "refused")
        if path == tmp_path / "init" / "cgroup.procs":
            if enabled.exists():
                raise OSError(errno.EOPNOTSUPP, "refused")
            if text == "12":
                raise ProcessLookupError(errno.ESRCH, "it ended")
            write(processes, processes.read_text().replace(f"{text}\n", "").replace("12\n", ""))
        return write(path, text)

    write(tmp_path / "cgroup.controllers", "cpu memory\n")
    write(processes, "1\n12\n34\n")
    monkeypatch.setattr(Path, "write_text", kernel)
    cgroups.make(tmp_path)
    assert processes.read_text() == ""
    assert enabled.read_text() == "+cpu +memory"
    assert (tmp_path / "crewyard" / "cgroup.subtree_control").read_text() == "+cpu +memory"


@pytest.mark.parametrize("reason", [errno.EBUSY, errno.EINVAL])
def test_controllers_that_stay_off_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: int
) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    (tmp_path / "cgroup.procs").write_text("")

    def refuse(path: Path, text: str) -> int:
        raise OSError(reason, "refused")

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(DevClusterError, match=f"controllers cpu, memory .* in {tmp_path}: .*refused"):
        cgroups.make(tmp_path)


def test_an_empty_group_is_removed_in_every_tree(tmp_path: Path) -> None:
    for tree in ("cpu", "memory"):
        (tmp_path / tree / "crewyard" / "kubepods").mkdir(parents=True)
        (tmp_path / tree / "cgroup.procs").write_text("")
    assert cgroups.remove(tmp_path) == []
    assert not list(tmp_path.glob("*/crewyard"))
