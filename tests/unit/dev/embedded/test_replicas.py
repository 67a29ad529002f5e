"""Replicas on the dev cluster: the recorded choice, and the backends that the service gets."""

from pathlib import Path

import pytest

from api.config import parse
from dev.__main__ import main
from dev.embedded import replicas
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
