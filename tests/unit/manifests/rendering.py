"""Rendering by helm and kustomize, and a comparable form of both."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
CHART = ROOT / "manifests" / "chart"
BASE = ROOT / "manifests" / "base"
OVERLAYS = ROOT / "manifests" / "overlays"
NAMESPACE = "crewyard-system"
HELMS_LABELS = (
    "helm.sh/chart",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/version",
)

Objects = list[dict[str, Any]]


class _Strict(yaml.SafeLoader):
    """Loader that rejects an object with a duplicate key."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        assert not twice, f"{node.start_mark}: twice: {twice}"
        return super().construct_mapping(node, deep)


class RenderError(Exception):
    """helm failed to render; the text is its error."""


def _need(program: str, target: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program}: `make {target}` builds it")


def helm(
    *values: str | Path, release: str = "crewyard", chart: Path = CHART, cluster: tuple[str, ...] = ()
) -> Objects:
    """Return the chart's objects; a Path is a values file, a text `name=value`. Raises RenderError.

    `cluster` are the API versions that the rendered-for cluster has.
    """
    _need("helm", "tools")
    argv = ["helm", "template", release, str(chart), "--namespace", NAMESPACE]
    for version in cluster:
        argv += ["--api-versions", version]
    for value in values:
        argv += ["--values", str(value)] if isinstance(value, Path) else ["--set-json", value]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RenderError(done.stderr)
    return [document for document in yaml.load_all(done.stdout, _Strict) if document]


def kustomize(directory: Path) -> Objects:
    """Return the objects of `kubectl kustomize`."""
    _need("kubectl", "up")
    done = subprocess.run(
        ["kubectl", "kustomize", str(directory)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def name(item: dict[str, Any]) -> str:
    """Return `Kind namespace/name`."""
    metadata = item["metadata"]
    return f"{item['kind']} {metadata.get('namespace', '')}/{metadata['name']}"


def comparable(objects: Objects) -> dict[str, Any]:
    """Return the objects by name without what only one of the two tools adds.

    helm adds labels, annotations and the checksum that restarts pods after a change of settings; kustomize
    adds a hash to the ConfigMap's name for the same purpose; they fold long texts differently.
    """
    text = re.sub(r'"crewyard-config-[a-z0-9]{10}"', '"crewyard-config"', json.dumps(objects))
    by_name = {}
    for item in json.loads(text):
        for metadata in (item["metadata"], item.get("spec", {}).get("template", {}).get("metadata", {})):
            for kind, theirs in (("labels", HELMS_LABELS), ("annotations", ("helm.sh/", "checksum/"))):
                own = {
                    key: value
                    for key, value in (metadata.get(kind) or {}).items()
                    if not key.startswith(theirs)
                }
                metadata.pop(kind, None)
                if own:
                    metadata[kind] = own
        pod = item.get("spec", {}).get("template", {}).get("spec", {})
        for owner in (pod, *pod.get("containers", [])):
            for list_field in ("env", "envFrom", "ports", "volumeMounts", "volumes"):
                if list_field in owner:
                    owner[list_field] = sorted(
                        owner[list_field], key=lambda entry: json.dumps(entry, sort_keys=True)
                    )
        by_name[name(item)] = _folded(item)
    return by_name


def _folded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _folded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_folded(inner) for inner in value]
    return " ".join(value.split()) if isinstance(value, str) else value
