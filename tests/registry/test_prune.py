"""Prune deletes unused images, and no others, from a real registry."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from build.__main__ import run
from build.image.manifest import image_of_layers
from build.json_object import BuildSettingsInvalid
from build.logs import BuildLog
from build.registry.credential import RegistryCredential
from build.registry.prune import prune
from build.registry.prune_settings import PruneSettings, read_prune_settings
from build.registry.repository import ImageRepository

from .conftest import RunningRegistry


def repository(registry: RunningRegistry) -> ImageRepository:
    return ImageRepository(f"{registry.address}/crews/demo", insecure=True)


def push(registry: RunningRegistry, tag: str, content: str = "") -> str:
    config = json.dumps({"content": content or tag}).encode()
    return repository(registry).push_image(image_of_layers(config, []), tag)


def settings(registry: RunningRegistry, images: list[str] = [], keys: list[str] = []) -> PruneSettings:  # noqa: B006
    request: dict[str, Any] = {
        "namespace": "crews",
        "project": "demo",
        "registry": {"prefix": registry.address, "insecure": True},
        "images": [f"{registry.address}/crews/demo@{digest}" for digest in images],
        "dependencies": keys,
    }
    return read_prune_settings({"CREWYARD_PRUNE": json.dumps(request)})


A, B, C = "a" * 64, "b" * 64, "c" * 64


def test_prune_images_and_dependencies(registry: RunningRegistry) -> None:
    old, new = push(registry, "build-old"), push(registry, "build-new")
    push(registry, f"deps-{A}")
    kept = push(registry, f"deps-{B}")
    request = settings(registry, [old, f"sha256:{'0' * 64}"], [A, C])
    assert prune(request, BuildLog()) == {"outcome": "pruned", "removed": 2}
    remaining = repository(registry)
    assert [remaining.digest(tag) for tag in ("build-old", f"deps-{A}")] == [None, None]
    assert [remaining.digest(tag) for tag in ("build-new", f"deps-{B}")] == [new, kept]
    assert prune(request, BuildLog()) == {"outcome": "pruned", "removed": 0}


def test_image_with_a_used_tag_is_kept(registry: RunningRegistry) -> None:
    same = push(registry, f"deps-{A}", "same")
    assert push(registry, f"deps-{B}", "same") == same
    output = io.StringIO()
    assert prune(settings(registry, keys=[A]), BuildLog(out=output)) == {"outcome": "pruned", "removed": 0}
    assert "kept" in output.getvalue()
    assert repository(registry).digest(f"deps-{B}") == same
    # Two tags of one manifest.
    assert prune(settings(registry, keys=[A, B]), BuildLog())["removed"] == 1
    assert [repository(registry).digest(f"deps-{key}") for key in (A, B)] == [None, None]


def test_prune_without_repository(registry: RunningRegistry) -> None:
    assert prune(settings(registry, [f"sha256:{'1' * 64}"], [A]), BuildLog())["removed"] == 0


def test_registry_without_delete(registry_without_delete: RunningRegistry) -> None:
    digest = push(registry_without_delete, "build-old")
    output = io.StringIO()
    request = settings(registry_without_delete, [digest], [A])
    assert prune(request, BuildLog(out=output)) == {"outcome": "pruned", "removed": 0}
    assert output.getvalue().count("does not support deletion") == 1


def test_image_of_another_project_is_an_error(registry: RunningRegistry) -> None:
    request = settings(registry)
    foreign = PruneSettings(
        request.repository, True, RegistryCredential(), (f"{registry.address}/crews/x@sha256:{'0' * 64}",), ()
    )
    result, code = run("prune", foreign, BuildLog())
    assert (result["outcome"], code) == ("trouble", 75)


def test_unreachable_registry_is_an_infrastructure_error() -> None:
    unreachable = PruneSettings(
        "127.0.0.1:9/crews/demo", True, RegistryCredential(), (f"127.0.0.1:9/crews/demo@sha256:{A}",), ()
    )
    result, code = run("prune", unreachable, BuildLog())
    assert (result["outcome"], result["reason"], code) == ("trouble", "RegistryPush", 75)
    assert result["log"].splitlines()[-1] == f"infrastructure error: {result['message']}"


def test_command(registry: RunningRegistry, tmp_path: Path) -> None:
    digest = push(registry, "build-old")
    request = {
        "namespace": "crews",
        "project": "demo",
        "registry": {"prefix": registry.address, "insecure": True},
        "images": [f"{registry.address}/crews/demo@{digest}"],
        "dependencies": [],
    }
    termination = tmp_path / "termination"
    environment = {"CREWYARD_PRUNE": json.dumps(request), "CREWYARD_TERMINATION": str(termination)}
    done = subprocess.run(
        [sys.executable, "-m", "build", "prune"],
        env={**os.environ, **environment},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(termination.read_text()) == {"outcome": "pruned", "removed": 1}


@pytest.mark.parametrize(
    ("key", "value"), [("images", ["x:latest"]), ("dependencies", ["../x"]), ("images", "x"), ("project", "")]
)
def test_error_names_the_key(key: str, value: object) -> None:
    request = {"namespace": "crews", "project": "demo", "registry": {"prefix": "r"}, key: value}
    with pytest.raises(BuildSettingsInvalid, match=f"CREWYARD_PRUNE.{key}"):
        read_prune_settings({"CREWYARD_PRUNE": json.dumps(request)})
