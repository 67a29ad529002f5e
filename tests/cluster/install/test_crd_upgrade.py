"""CRDs of the chart: upgraded with it, kept after uninstall, adopted by a new install.

Other tests use the cluster's CRDs, so a copy of the chart has the same three in another API group.
"""

import json
import secrets
import shutil
import subprocess

import pytest
import yaml

from tests.cluster.install.installation import (
    CHART,
    DELETE_TIMEOUT,
    ROOT,
    CommandError,
    command,
    kubectl,
    until,
)

KINDS = ("projects", "deployments", "runs")

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(shutil.which("helm") is None, reason="no helm: `make tools` builds it"),
]


@pytest.fixture
def group():
    name = f"install-{secrets.token_hex(3)}"
    yield f"{name}.test"
    names = [f"{kind}.{name}.test" for kind in KINDS]
    subprocess.run(["helm", "uninstall", name, "-n", name], capture_output=True, timeout=120)
    kubectl("delete", "crd", *names, "--ignore-not-found", "--wait=false")
    # After a conflict the apiserver's finalizer retries only every five minutes.
    until(lambda: not kubectl("get", "crd", *names, "--ignore-not-found", "-o", "name"), 420)
    kubectl("delete", "namespace", name, "--ignore-not-found", DELETE_TIMEOUT)


def chart(directory, group, change):
    """Copy the chart with only the CRDs, in that group, after `change` is applied to each."""
    shutil.copytree(CHART, directory, ignore=shutil.ignore_patterns("base", "monitoring", "ci"))
    for path in (directory / "templates").iterdir():
        if path.name not in ("_names.tpl", "crds.yaml"):
            path.unlink()
    for path in (directory / "files" / "crds").iterdir():
        kind = yaml.safe_load((ROOT / "crds" / path.name).read_text())
        kind["metadata"]["name"] = f"{kind['spec']['names']['plural']}.{group}"
        kind["spec"]["group"] = group
        kind["spec"]["names"].pop("shortNames", None)
        kind["spec"]["names"].pop("categories", None)
        change(kind)
        path.write_text(yaml.safe_dump(kind))
    return directory


def older(kind):
    """Remove `retention` from the Project schema, as in an older release."""
    if kind["spec"]["names"]["plural"] == "projects":
        schema = kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        del schema["properties"]["spec"]["properties"]["retention"]


def project(group, name, **spec):
    """Apply a Project of that group with strict validation."""
    metadata = {"name": name, "namespace": group.removesuffix(".test")}
    body = {"apiVersion": f"{group}/v1alpha1", "kind": "Project", "metadata": metadata, "spec": spec}
    return kubectl("apply", "--validate=strict", "-f", "-", stdin=json.dumps(body))


def test_crds_are_upgraded_and_objects_stay(tmp_path, group):
    name = group.removesuffix(".test")
    old = chart(tmp_path / "old", group, older)
    new = chart(tmp_path / "new", group, lambda kind: None)
    here = (name, "--namespace", name, "--create-namespace", "--timeout=120s")

    command("helm", "install", here[0], str(old), *here[1:])
    # A CRD is established, and then served, with a delay.
    until(lambda: _apply_or_none(group, "before"))
    with pytest.raises(CommandError, match="retention"):
        project(group, "early", retention={"runs": "1h"})
    uid = kubectl("-n", name, "get", f"projects.{group}", "before", "-o", "jsonpath={.metadata.uid}")

    command("helm", "upgrade", here[0], str(new), *here[1:])
    until(lambda: _apply_or_none(group, "after", retention={"runs": "1h"}))
    assert kubectl("-n", name, "get", f"projects.{group}", "before", "-o", "jsonpath={.metadata.uid}") == uid

    command("helm", "rollback", name, "--namespace", name, "--timeout=120s")
    until(lambda: not _apply_or_none(group, "back", retention={"runs": "1h"}))
    assert kubectl("-n", name, "get", f"projects.{group}", "before", "-o", "jsonpath={.metadata.uid}") == uid
    command("helm", "upgrade", here[0], str(new), *here[1:])

    command("helm", "uninstall", name, "--namespace", name)
    left = set(kubectl("-n", name, "get", f"projects.{group}", "-o", "name").split())
    assert {f"project.{group}/before", f"project.{group}/after"} <= left
    # The same release adopts the CRDs that it kept.
    command("helm", "install", here[0], str(new), *here[1:])
    assert kubectl("-n", name, "get", f"projects.{group}", "before", "-o", "jsonpath={.metadata.uid}") == uid


def test_helm_takes_over_kustomize_crds_on_request(tmp_path, group):
    name = group.removesuffix(".test")
    new = chart(tmp_path / "new", group, lambda kind: None)
    for path in (new / "files" / "crds").iterdir():
        kubectl("apply", "--server-side", "-f", str(path))
    here = ("install", name, str(new), "--namespace", name, "--create-namespace", "--timeout=120s")
    with pytest.raises(CommandError, match="invalid ownership metadata"):
        command("helm", *here)
    command("helm", *here, "--take-ownership")
    owner = kubectl("get", "crd", f"runs.{group}", "-o", "jsonpath={.metadata.labels}")
    assert '"app.kubernetes.io/managed-by":"Helm"' in owner


def _apply_or_none(group, name, **spec):
    try:
        return project(group, name, **spec)
    except CommandError:
        return None
