"""Overlays rendered by `kubectl kustomize`: valid objects, and settings that work."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from api.config import parse

ROOT = Path(__file__).parents[3] / "manifests" / "overlays"
NAMES = sorted(path.name for path in ROOT.iterdir() if path.is_dir())


def built(name: str) -> list[dict[str, Any]]:
    if shutil.which("kubectl") is None:
        pytest.skip("no kubectl: `make up` builds it")
    done = subprocess.run(["kubectl", "kustomize", ROOT / name], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def one(objects: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    [match] = [o for o in objects if o["kind"] == kind and o["metadata"]["name"].startswith(name)]
    return match


@pytest.mark.parametrize("name", NAMES)
def test_every_object_is_valid(name: str) -> None:
    for item in built(name):
        if not item["apiVersion"].startswith(("crewyard.dev", "apiextensions.k8s.io")):
            kubernetes_validate.validate(item, "1.36", strict=True)


@pytest.mark.parametrize(("name", "expected"), [("dev", "off"), ("replicas", "on")])
def test_images_are_pulled_ahead_but_not_to_the_only_node(name: str, expected: str) -> None:
    [settings] = [o["data"] for o in built(name) if o["kind"] == "ConfigMap" and "CREWYARD_DATA" in o["data"]]
    assert settings["CREWYARD_PULL_AHEAD"] == expected


def test_replicas_share_storage_and_tolerate_a_loss() -> None:
    objects = built("replicas")
    spec = one(objects, "Deployment", "crewyard-api")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1},
    }
    pod = spec["template"]["spec"]
    [container] = pod["containers"]
    assert [volume["name"] for volume in pod["volumes"]] == ["tmp"]
    assert [mount["name"] for mount in container["volumeMounts"]] == ["tmp"]
    assert [o for o in objects if o["kind"].startswith("PersistentVolume")] == []
    secret = {entry["name"] for entry in container["env"] if "secretKeyRef" in entry["valueFrom"]}
    assert secret >= {"CREWYARD_TOKEN_KEY", "CREWYARD_DATABASE_URL", "CREWYARD_RATE_LIMIT_URL"}
    assert one(objects, "PodDisruptionBudget", "crewyard-api")["spec"]["minAvailable"] < spec["replicas"]
    [settings] = [
        o["data"] for o in objects if o["kind"] == "ConfigMap" and "CREWYARD_BLOBS_URL" in o["data"]
    ]
    config = parse({**settings, "CREWYARD_TOKEN_KEY": "k" * 32})
    assert (config.blobs_url, config.signer) == ("s3://crewyard", None)
