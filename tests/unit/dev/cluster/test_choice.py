"""Choice of the cluster for a command, and the targets that each cluster allows."""

import os
import tempfile
from pathlib import Path

import pytest

from dev import __main__ as command
from dev.cluster import choice
from dev.errors import DevClusterError, OperationRefused
from dev.kind import engine
from dev.net import proxy_bypass
from dev.settings import Settings


def able() -> bool:
    return True


def unable() -> bool:
    return False


def never() -> bool:
    raise AssertionError("Docker was called")


@pytest.mark.parametrize(
    ("requested", "recorded", "has_data", "starting", "docker", "cluster"),
    [
        (None, None, False, True, able, "kind"),
        (None, None, False, True, unable, "embedded"),
        # An existing embedded node wins, without a call of Docker.
        (None, None, True, True, never, "embedded"),
        (None, "embedded", True, True, never, "embedded"),
        # Only `up` checks Docker: every shell calls `env`.
        (None, None, False, False, never, "embedded"),
        (None, "kind", False, False, never, "kind"),
        (None, "current", True, False, never, "current"),
        ("current", None, True, True, never, "current"),
        ("embedded", None, False, True, never, "embedded"),
        ("kind", None, True, True, never, "kind"),
        ("kind", "kind", False, True, never, "kind"),
    ],
)
def test_the_choice(requested, recorded, has_data, starting, docker, cluster):
    assert choice.decide(requested, recorded, has_data, starting, docker) == cluster


@pytest.mark.parametrize("noted", choice.NAMES)
@pytest.mark.parametrize("asked", choice.NAMES)
def test_one_dev_cluster_per_state_directory(asked, noted):
    if asked == noted:
        assert choice.decide(asked, noted, True, True, never) == noted
    else:
        with pytest.raises(DevClusterError, match=f"on {noted}.*CREWYARD_STATE.*make down"):
            choice.decide(asked, noted, True, True, never)


@pytest.mark.parametrize(
    ("text", "asked"), [("", None), (" ", None), ("kind", "kind"), (" current", "current")]
)
def test_the_variable(text, asked):
    assert choice.requested({"CREWYARD_CLUSTER": text}) == asked


@pytest.mark.parametrize("text", ["minikube", "Kind", "embedded,kind"])
def test_a_wrong_value_lists_the_valid_ones(text):
    with pytest.raises(DevClusterError, match="embedded, kind, current"):
        choice.requested({"CREWYARD_CLUSTER": text})


@pytest.mark.parametrize("target", ["test", "cluster", "campaign", "bench", "fuzz"])
def test_harmful_targets_do_not_run_on_a_shared_cluster(target):
    with pytest.raises(OperationRefused, match=f"make {target}") as refused:
        choice.check("current", target)
    assert refused.value.code == 2


def test_targets_per_cluster():
    for target in ("demo", "e2e", "test", "cluster", "campaign", "bench", "fuzz"):
        choice.check("embedded", target)
    for target in ("demo", "e2e"):
        choice.check("current", target)
    choice.check("kind", "test")
    with pytest.raises(OperationRefused):
        choice.check("kind", "campaign")


def test_the_choice_is_recorded_and_removed(tmp_path: Path):
    settings = Settings(tmp_path)
    assert choice.recorded(settings) is None
    choice.record(settings, "kind")
    assert choice.recorded(settings) == "kind"
    choice.remove_record(settings)
    assert choice.recorded(settings) is None
    settings.run.mkdir()
    assert choice.recorded(settings) == "embedded"
    assert not choice.has_embedded_data(settings)
    (settings.data / "etcd").mkdir(parents=True)
    assert choice.has_embedded_data(settings)


def test_the_state_directory_of_another_user_is_named(tmp_path: Path, monkeypatch):
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "owner", lambda path: "root")
    with pytest.raises(DevClusterError, match=rf"{tmp_path} belongs to root.*CREWYARD_STATE"):
        choice.recorded(Settings(tmp_path))
    monkeypatch.setattr(Path, "owner", refuse)
    with pytest.raises(DevClusterError, match=rf"{tmp_path} belongs to another user"):
        choice.recorded(Settings(tmp_path))


@pytest.mark.parametrize("name", ["tools", "nightly-tools"])
def test_tools_name_a_state_directory_that_they_cannot_use(name: str, monkeypatch, capsys):
    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setenv("CREWYARD_STATE", "/proc/crewyard")
    monkeypatch.setattr(proxy_bypass, "variables", lambda environment: {})
    assert command.main([name]) == 1
    assert "The state directory cannot be written: " in capsys.readouterr().err
    monkeypatch.setattr(Path, "read_text", refuse)
    assert command.main([name]) == 1
    assert "The state directory /proc/crewyard belongs to another user" in capsys.readouterr().err


def test_a_target_is_checked_against_the_cluster_that_up_will_choose(tmp_path: Path, monkeypatch, capsys):
    # A worker's own directory is too long a path for sockets.
    monkeypatch.setenv(
        "CREWYARD_STATE", str(Path(tempfile.gettempdir()) / f"cy-{tmp_path.name[-12:]}-{os.getpid()}")
    )
    monkeypatch.delenv("CREWYARD_CLUSTER", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(proxy_bypass, "variables", lambda environment: {})
    monkeypatch.setattr(engine, "problem", lambda: None)
    assert command.main(["fit", "campaign"]) == 2
    assert "only on the embedded node" in capsys.readouterr().err
    assert command.main(["fit", "test"]) == 0
    monkeypatch.setattr(engine, "problem", lambda: "there is no program `docker`")
    assert command.main(["fit", "campaign"]) == 0
