"""What is not needed any more leaves a real registry, and nothing else does."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from build.__main__ import run
from build.image.manifest import docker_image
from build.json_object import SettingsInvalid
from build.logs import Log
from build.registry.credential import Credential
from build.registry.prune import prune
from build.registry.prune_settings import PruneSettings, read_prune_settings
from build.registry.repository import Repository

from .conftest import Registry


def repository(registry: Registry) -> Repository:
    return Repository(f"{registry.address}/crews/demo", insecure=True)


def push(registry: Registry, tag: str, content: str = "") -> str:
    config = json.dumps({"content": content or tag}).encode()
    return repository(registry).push_image(docker_image(config, []), tag)


def settings(registry: Registry, images: list[str] = [], keys: list[str] = []) -> PruneSettings:  # noqa: B006
    told: dict[str, Any] = {
        "namespace": "crews",
        "project": "demo",
        "registry": {"prefix": registry.address, "insecure": True},
        "images": [f"{registry.address}/crews/demo@{digest}" for digest in images],
        "dependencies": keys,
    }
    return read_prune_settings({"CREWYARD_PRUNE": json.dumps(told)})


A, B, C = "a" * 64, "b" * 64, "c" * 64


def test_images_and_dependencies_go_and_the_others_stay(registry: Registry) -> None:
    old, new = push(registry, "build-old"), push(registry, "build-new")
    push(registry, f"deps-{A}")
    kept = push(registry, f"deps-{B}")
    asked = settings(registry, [old, f"sha256:{'0' * 64}"], [A, C])
    assert prune(asked, Log()) == {"outcome": "pruned", "removed": 2}
    there = repository(registry)
    assert [there.digest(tag) for tag in ("build-old", f"deps-{A}")] == [None, None]
    assert [there.digest(tag) for tag in ("build-new", f"deps-{B}")] == [new, kept]
    assert prune(asked, Log()) == {"outcome": "pruned", "removed": 0}


def test_an_image_that_a_tag_in_use_has_too_stays(registry: Registry) -> None:
    same = push(registry, f"deps-{A}", "same")
    assert push(registry, f"deps-{B}", "same") == same
    said = io.StringIO()
    assert prune(settings(registry, keys=[A]), Log(out=said)) == {"outcome": "pruned", "removed": 0}
    assert "stays" in said.getvalue()
    assert repository(registry).digest(f"deps-{B}") == same
    assert prune(settings(registry, keys=[A, B]), Log())["removed"] >= 1


def test_a_project_that_was_never_built_has_nothing_to_remove(registry: Registry) -> None:
    assert prune(settings(registry, [f"sha256:{'1' * 64}"], [A]), Log())["removed"] == 0


def test_a_registry_that_does_not_delete_is_no_failure(registry_without_delete: Registry) -> None:
    digest = push(registry_without_delete, "build-old")
    said = io.StringIO()
    asked = settings(registry_without_delete, [digest], [A])
    assert prune(asked, Log(out=said)) == {"outcome": "pruned", "removed": 0}
    assert said.getvalue().count("does not delete") == 1


def test_another_projects_image_is_not_touched(registry: Registry) -> None:
    told = settings(registry)
    foreign = PruneSettings(
        told.repository, True, Credential(), (f"{registry.address}/crews/x@sha256:{'0' * 64}",), ()
    )
    words, code = run("prune", foreign, Log())
    assert (words["outcome"], code) == ("trouble", 75)


def test_a_registry_that_is_away_is_trouble() -> None:
    away = PruneSettings(
        "127.0.0.1:9/crews/demo", True, Credential(), (f"127.0.0.1:9/crews/demo@sha256:{A}",), ()
    )
    words, code = run("prune", away, Log())
    assert (words["outcome"], words["reason"], code) == ("trouble", "RegistryPush", 75)
    assert words["log"].splitlines()[-1] == f"trouble of the installation: {words['message']}"


def test_the_command(registry: Registry, tmp_path: Path) -> None:
    digest = push(registry, "build-old")
    told = {
        "namespace": "crews",
        "project": "demo",
        "registry": {"prefix": registry.address, "insecure": True},
        "images": [f"{registry.address}/crews/demo@{digest}"],
        "dependencies": [],
    }
    words = tmp_path / "words"
    environment = {"CREWYARD_PRUNE": json.dumps(told), "CREWYARD_TERMINATION": str(words)}
    done = subprocess.run(
        [sys.executable, "-m", "build", "prune"],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(words.read_text()) == {"outcome": "pruned", "removed": 1}


@pytest.mark.parametrize(
    ("key", "value"), [("images", ["x:latest"]), ("dependencies", ["../x"]), ("images", "x"), ("project", "")]
)
def test_what_is_malformed_is_named(key: str, value: object) -> None:
    told = {"namespace": "crews", "project": "demo", "registry": {"prefix": "r"}, key: value}
    with pytest.raises(SettingsInvalid, match=f"CREWYARD_PRUNE.{key}"):
        read_prune_settings({"CREWYARD_PRUNE": json.dumps(told)})
