"""Objects of the chart and the kustomizations, checked by linter, schemas and the real apiserver."""

import json
import secrets
import shutil
import subprocess
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.install import openapi
from tests.cluster.install.installation import CHART, ROOT, CommandError, command, kubectl

EVERYTHING = CHART / "ci" / "everything.yaml"
REPLICAS = CHART / "values-replicas.yaml"
VALUES = {"defaults": (), "replicas": (REPLICAS,), "everything": (EVERYTHING,)}
UNAVAILABLE_KINDS = "HTTPRoute,ServiceMonitor,PrometheusRule"
"""Kinds without a CRD in this cluster."""


def files(values):
    """Return the helm arguments for values files."""
    return [argument for value in values for argument in ("--values", str(value))]


def render(values, *more, namespace="crewyard-system"):
    """Return the chart's objects as YAML."""
    return command(
        "helm", "template", "crewyard", str(CHART), "--namespace", namespace, *files(values), *more
    )


CHART_RENDERINGS = {f"chart-{name}.yaml": partial(render, values) for name, values in VALUES.items()}
KUSTOMIZE_RENDERINGS = {
    f"kustomize-{name}.yaml": partial(kubectl, "kustomize", str(ROOT / "manifests" / directory))
    for name, directory in (("base", "base"), ("replicas", "overlays/replicas"), ("dev", "overlays/dev"))
}
UNKNOWN = "unknown-field.yaml"
RENDERINGS = {
    **CHART_RENDERINGS,
    **KUSTOMIZE_RENDERINGS,
    UNKNOWN: lambda: render(()).replace("  replicas: 1", "  replicass: 1"),
}


pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="no helm: `make tools` builds it")


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    """Return kubeconform's location of this apiserver's schemas."""
    document = json.loads(kubectl("get", "--raw", "/openapi/v2"))
    return openapi.write(document, tmp_path_factory.mktemp("schemas"))


@pytest.fixture(scope="module")
def statuses(schemas, tmp_path_factory):
    """Return what kubeconform says of each rendering: the status of its objects.

    One call: it needs seconds of a processor to read the schemas.
    """
    folder = tmp_path_factory.mktemp("renderings")
    for name, rendering in RENDERINGS.items():
        (folder / name).write_text(rendering())
    argv = ["kubeconform", "-strict", "-output", "json", "-verbose", "-skip", UNAVAILABLE_KINDS]
    done = subprocess.run(
        [*argv, "-schema-location", schemas, str(folder)], capture_output=True, text=True, timeout=300
    )
    found = {name: Counter() for name in RENDERINGS}
    for resource in json.loads(done.stdout)["resources"]:
        name = Path(resource["filename"]).name
        found[name][resource["status"], resource["msg"].split(": ", 1)[-1][:200]] += 1
    return found


@contextmanager
def created(*names):
    """Create empty namespaces; delete them at the end."""
    try:
        for name in names:
            kubectl("create", "namespace", name)
        yield names
    finally:
        for name in names:
            kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def namespaces():
    """Two empty namespaces: for the service and for crews."""
    name = f"install-{secrets.token_hex(3)}"
    with created(f"{name}-system", f"{name}-crews") as names:
        yield names


@pytest.fixture
def team():
    """An empty namespace for a team."""
    with created(f"install-{secrets.token_hex(3)}-team") as (name,):
        yield name


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_helm_lint_finds_nothing(values):
    argv = ["helm", "lint", "--strict", str(CHART), *files(values)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout and "[ERROR]" not in done.stdout


@pytest.mark.parametrize("name", [*CHART_RENDERINGS, *KUSTOMIZE_RENDERINGS])
def test_objects_match_apiserver_schemas(statuses, name):
    found = statuses[name]
    assert {status for status, _ in found} <= {"statusValid", "statusSkipped"}, found
    assert found["statusValid", ""] > 20


def test_unknown_field_is_invalid(statuses):
    invalid = {
        message: count for (status, message), count in statuses[UNKNOWN].items() if status == "statusInvalid"
    }
    assert sum(invalid.values()) == 2 and all("replicass" in message for message in invalid), invalid


def test_second_release_in_a_namespace_is_refused(namespaces):
    system, crews = namespaces
    labels = {"app.kubernetes.io/name": "crewyard", "app.kubernetes.io/component": "api"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "api", "image": "none"}]}}
    metadata = {"name": "api", "labels": labels, "annotations": {"meta.helm.sh/release-name": "first"}}
    existing = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}
    existing["spec"] = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
    kubectl("-n", system, "create", "-f", "-", stdin=json.dumps(existing))
    argv = [str(CHART), "--namespace", system, "--dry-run=server"]
    argv += ["--set", f"crds.install=false,crews.create=false,crews.namespace={crews}"]
    with pytest.raises(CommandError, match=f"{system} already has the release first of Crewyard"):
        command("helm", "install", "second", *argv)
    kubectl("-n", system, "annotate", "--overwrite", "deployment", "api", "meta.helm.sh/release-name=second")
    assert "second-crewyard-api" in command("helm", "install", "second", *argv)


def test_upgrade_keeps_key_and_restarts_on_changed_secret(namespaces):
    """Slow: Helm installs the chart once and upgrades it twice."""
    system, crews = namespaces
    release = system.removesuffix("-system")
    # No node matches: nothing starts, the test checks only the objects.
    values = {
        "crds": {"install": False},
        "crews": {"create": False, "namespace": crews},
        "nodeSelector": {"example.com/nowhere": "yes"},
        "rateLimit": {"existingSecret": "counters"},
        "identity": {"kubernetesTokens": False},
        "admissionPolicy": {"enabled": False},
    }

    def upgraded():
        argv = ["helm", "upgrade", "--install", release, str(CHART), "--namespace", system, "--values", "-"]
        command(*argv, stdin=json.dumps(values))
        found = json.loads(kubectl("-n", system, "get", "deployments,secrets", "-o", "json"))["items"]
        secret = {one["metadata"]["name"]: one.get("data") for one in found if one["kind"] == "Secret"}
        pods = [one["spec"]["template"]["metadata"] for one in found if one["kind"] == "Deployment"]
        [checksum] = {pod["annotations"]["checksum/secrets"] for pod in pods}
        return secret[f"{release}-crewyard-tokens"]["key"], checksum

    def counters(verb, value):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "counters"}}
        kubectl("-n", system, verb, "-f", "-", stdin=json.dumps({**body, "stringData": {"url": value}}))

    try:
        counters("create", "redis://one")
        first = upgraded()
        assert upgraded() == first
        counters("replace", "redis://two")
        key, checksum = upgraded()
        assert key == first[0] and checksum != first[1]
    finally:
        argv = ["helm", "uninstall", release, "--namespace", system, "--ignore-not-found"]
        subprocess.run(argv, capture_output=True, timeout=120)


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_apiserver_accepts_all_chart_objects(namespaces, team, values):
    system, crews = namespaces
    teams = ["--set", f"crews.teams={{{team}}}"] if EVERYTHING in values else []
    off = ["--set", "gateway.enabled=false,monitoring.scrape=false,monitoring.rules=false"]
    objects = render(values, "--set", f"crews.namespace={crews}", *teams, *off, namespace=system)
    output = kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=install-test", "--dry-run=server",
        "--validate=strict", "-f", "-", stdin=objects,
    )  # fmt: skip
    assert len(output.splitlines()) > 20
    existing = set(kubectl("-n", system, "get", "deployments,configmaps", "-o", "name").split())
    # The controller manager creates it in every namespace.
    assert existing <= {"configmap/kube-root-ca.crt"}
