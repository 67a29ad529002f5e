"""The cluster of kubectl's current context, and the confirmation that it is the intended one."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.cluster.kube_client import KubeApiError
from dev.cluster.kubectl import KubectlApi
from dev.current import identity
from dev.errors import DevClusterError, OperationRefused
from dev.process import command
from dev.settings import Settings

# First version with selectable fields of custom resources (`kubectl get crun --field-selector`).
MINOR_MINIMUM = 31


@dataclass(frozen=True)
class ClusterContext:
    """What a person recognises a cluster by."""

    name: str
    server: str
    version: str
    uid: str

    def __str__(self) -> str:
        return f"context  {self.name}\nserver   {self.server}\nversion  {self.version}\ncluster  {self.uid}"


def kubectl_program(settings: Settings) -> str:
    """Return the kubectl on PATH, which knows the person's logins, else the embedded node's."""
    path = shutil.which("kubectl") or str(settings.bin / "kubectl")
    if not Path(path).exists():
        raise DevClusterError("kubectl is not on PATH. Install it: https://kubernetes.io/docs/tasks/tools/")
    return path


def pin(kubectl: str, file: Path) -> None:
    """Copy the current context, and no other, to a separate kubeconfig.

    A later change of the current context then cannot redirect a command to another cluster. Raises
    DevClusterError if another cluster is pinned already.
    """
    try:
        text = command.read_output([kubectl, "config", "view", "--minify", "--flatten", "--raw"])
    except DevClusterError as error:
        raise DevClusterError(
            f"kubectl has no current context. Set one, or set KUBECONFIG. ({error})"
        ) from error
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    if file.exists():
        pinned, current = (read_name(KubectlApi(kubectl, kubeconfig)) for kubeconfig in (file, fresh))
        if pinned[1] != current[1]:
            fresh.unlink()
            raise DevClusterError(
                f"This state directory belongs to an installation on {pinned[0]} ({pinned[1]}); the "
                f"current context is {current[0]} ({current[1]}). Switch back, or set CREWYARD_STATE to "
                "another directory for the other cluster."
            )
    fresh.replace(file)


def read_name(kubectl: KubectlApi) -> tuple[str, str]:
    """Return name and server of a pinned kubeconfig's context."""
    view = json.loads(kubectl.run("config", "view", "-o", "json"))
    return view["current-context"], view["clusters"][0]["cluster"]["server"]


def read_context(kubectl: KubectlApi) -> ClusterContext:
    """Return the context of a pinned kubeconfig and its cluster's version. Raises DevClusterError."""
    name, server = read_name(kubectl)
    try:
        version = json.loads(kubectl.run("get", "--raw", "/version"))
    except KubeApiError as error:
        raise DevClusterError(f"The cluster at {server} does not respond: {error}") from error
    return ClusterContext(name, server, version["gitVersion"], identity.read_uid(kubectl))


def new_enough(version: str) -> bool:
    """Return whether a version such as `v1.33.2-gke.1` supports the CRDs."""
    major, _, after_major = version.lstrip("v").partition(".")
    minor = after_major.partition(".")[0].rstrip("+")
    return major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (1, MINOR_MINIMUM)


def confirm(context: ClusterContext, environment: Mapping[str, str], plan: str, command: str) -> None:
    """Raise OperationRefused unless CONFIRM names the context; show `plan` and the `command` to run."""
    confirmed = environment.get("CONFIRM", "")
    if confirmed == context.name:
        return
    wrong = f"CONFIRM is {confirmed!r}, the context is {context.name!r}. " if confirmed else ""
    raise OperationRefused(f"{context}\n\n{plan}\n\n{wrong}Nothing was changed. To proceed:\n  {command}")
