"""Replicas on the dev cluster: the recorded choice, and the backends that the service gets."""

from pathlib import Path

import pytest

from api.config import parse
from dev.__main__ import main
from dev.embedded import replicas
from dev.embedded.cluster import EmbeddedCluster
from dev.errors import DevClusterError
from dev.net import proxy_bypass
from dev.progress import StepProgress
from dev.settings import Settings


def test_the_choice_is_kept_until_it_changes(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    assert not replicas.enabled(settings)
    replicas.record(settings, True)
    replicas.record(settings, True)
    assert replicas.enabled(settings)
    replicas.record(settings, False)
    replicas.record(settings, False)
    assert not replicas.enabled(settings)


def test_the_password_is_made_once_and_private(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    replicas.record(settings, True)
    word = replicas.password(settings)
    assert len(word) == 32 and replicas.password(settings) == word
    assert (settings.data / "replicas" / "password").stat().st_mode & 0o777 == 0o600


def test_the_secrets_are_settings_of_the_api_server() -> None:
    values = replicas.secret_values("0" * 32)
    config = parse(
        {
            "CREWYARD_TOKEN_KEY": "k" * 32,
            "CREWYARD_DATABASE_URL": values["crewyard-database"]["url"],
            "CREWYARD_RATE_LIMIT_URL": values["crewyard-rate-limit"]["url"],
            "CREWYARD_BLOBS_URL": "s3://crewyard",
            "CREWYARD_BLOBS_PUBLIC_URL": values["crewyard-bucket"]["AWS_ENDPOINT_URL"],
            **values["crewyard-bucket"],
        }
    )
    assert config.database_url.startswith("postgresql+asyncpg://crewyard:")
    assert config.signer is not None


def test_other_clusters_refuse_replicas(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # pytest's directories are too deep for the sockets of a state directory.
    state = "/tmp/crewyard-replicas-test"
    monkeypatch.setenv("CREWYARD_STATE", state)
    monkeypatch.setenv("CREWYARD_CLUSTER", "kind")
    assert main(["up", "--ha", "1"]) != 0
    assert "Leave HA unset" in capsys.readouterr().err
    assert not Path(state).exists()


def broken(*_: object) -> None:
    raise DevClusterError("no such package")


def test_the_choice_is_recorded_once_its_servers_are_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(tmp_path)
    cluster = EmbeddedCluster(settings, {}, StepProgress())
    cluster._start_backends(None)
    assert not replicas.enabled(settings)
    monkeypatch.setattr(replicas, "prepare", broken)
    with pytest.raises(DevClusterError):
        cluster._start_backends(True)
    assert not replicas.enabled(settings)
    monkeypatch.setattr(replicas, "prepare", lambda *_: [])
    cluster._start_backends(True)
    assert replicas.enabled(settings)
    monkeypatch.setattr(replicas, "prepare", broken)
    with pytest.raises(DevClusterError):
        cluster._start_backends(None)
    cluster._start_backends(False)
    assert not replicas.enabled(settings)


@pytest.mark.parametrize(("arguments", "choice"), [([], None), (["--ha", "1"], True), (["--ha", "0"], False)])
def test_up_passes_the_choice(
    arguments: list[str], choice: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices: list[bool | None] = []
    monkeypatch.setenv("CREWYARD_STATE", "/tmp/crewyard-replicas-test")
    monkeypatch.setenv("CREWYARD_CLUSTER", "embedded")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(proxy_bypass, "variables", lambda environment: {})
    monkeypatch.setattr(EmbeddedCluster, "up", lambda _, ha=None: choices.append(ha))
    assert main(["up", *arguments]) == 0
    assert choices == [choice]
    assert not Path("/tmp/crewyard-replicas-test").exists()
