"""`make dev`: API server and controller run from the checkout and restart when a file changes.

The pods keep their image, service accounts, volumes and policies; only the code is mounted over the image's,
from a PersistentVolume that is the checkout itself. `make deploy` installs the image's code again. Called by
`dev.__main__`.
"""

import hashlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dev.cluster.credentials import SYSTEM_NAMESPACE
from dev.images.service_image import PACKAGES
from dev.process import command
from dev.progress import StepProgress
from dev.settings import Settings

CODE_PATH = "/opt/crewyard/service"
"""WORKDIR of the Dockerfile, where the image has its code."""
DEPLOYMENTS = ("crewyard-api", "crewyard-controller")
UNSUPPORTED = (
    "make dev needs the embedded node, whose file system has the checkout: "
    "run it with CREWYARD_CLUSTER=embedded, or use make deploy here."
)
_RESTART_SECONDS = 120
_DEBOUNCE_MS = 300


def volume(checkout: Path) -> list[dict[str, Any]]:
    """Return PersistentVolume and claim of a checkout, named by its path, which is immutable. Pure."""
    name = f"crewyard-checkout-{hashlib.sha256(str(checkout).encode()).hexdigest()[:8]}"
    spec = {
        "accessModes": ["ReadOnlyMany"],
        "storageClassName": "",
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                **spec,
                "capacity": {"storage": "1Gi"},
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": SYSTEM_NAMESPACE, "name": name},
                "hostPath": {"path": str(checkout), "type": "Directory"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
            "spec": {**spec, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
        },
    ]


def patches(checkout: Path) -> list[dict[str, Any]]:
    """Return the kustomize patches that mount the checkout over the image's code. Pure."""
    claim = volume(checkout)[1]["metadata"]["name"]
    return [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE},
            "spec": {
                "template": {
                    "spec": {
                        "volumes": [{"name": "code", "persistentVolumeClaim": {"claimName": claim}}],
                        "containers": [
                            {
                                "name": name.removeprefix("crewyard-"),
                                "volumeMounts": [{"name": "code", "mountPath": CODE_PATH, "readOnly": True}],
                            }
                        ],
                    }
                }
            },
        }
        for name in DEPLOYMENTS
    ]


def affected(paths: set[Path], checkout: Path) -> list[str]:
    """Return the Deployments that import the changed files. Pure."""
    names = set()
    for path in paths:
        package = path.relative_to(checkout).parts[0]
        if package in PACKAGES:
            names |= {f"crewyard-{package}"} & set(DEPLOYMENTS) or set(DEPLOYMENTS)
    return sorted(names)


def follow(settings: Settings, checkout: Path, progress: StepProgress) -> None:
    """Restart the Deployments of changed files until Ctrl-C."""
    progress.print_line(
        "Code runs from this checkout. Save a file to restart; Ctrl-C ends, `make deploy` reverts."
    )
    for paths in _changes(checkout):
        names = affected(paths, checkout)
        if not names:
            continue
        started = time.monotonic()
        kubectl = [
            str(settings.bin / "kubectl"),
            f"--kubeconfig={settings.kubeconfig}",
            "-n",
            SYSTEM_NAMESPACE,
        ]
        targets = [f"deployment/{name}" for name in names]
        command.read_output([*kubectl, "rollout", "restart", *targets])
        try:
            for target in targets:
                command.read_output(
                    [*kubectl, "rollout", "status", target, f"--timeout={_RESTART_SECONDS}s"],
                    seconds=_RESTART_SECONDS + 10,
                )
        except command.CommandFailed as error:
            log = command.read_output([*kubectl, "logs", targets[0], "--tail=20"])
            progress.print_line(f"{', '.join(names)} did not start: {error}\n{log}")
        else:
            progress.print_line(f"{', '.join(names)} restarted in {time.monotonic() - started:.1f} s")


def _changes(checkout: Path) -> Iterator[set[Path]]:
    from watchfiles import PythonFilter, watch

    directories = [checkout / package for package in PACKAGES]
    for changes in watch(
        *directories, watch_filter=PythonFilter(), debounce=_DEBOUNCE_MS, raise_interrupt=False
    ):
        yield {Path(path) for _, path in changes}
