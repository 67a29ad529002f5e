"""The cluster that kubectl's current context names, and a person's word that it is the one that is meant."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.cluster.kube_client import KubeError
from dev.cluster.kubectl import Kubectl
from dev.current import identity
from dev.errors import GroundError, Refused
from dev.process import command
from dev.settings import Settings

# Selectable fields of custom resources, by which `kubectl get crun --field-selector` finds a project's runs.
MINOR_MINIMUM = 31


@dataclass(frozen=True)
class Context:
    """What a person recognises a cluster by."""

    name: str
    server: str
    version: str
    uid: str

    def __str__(self) -> str:
        return f"context  {self.name}\nserver   {self.server}\nversion  {self.version}\ncluster  {self.uid}"


def program(settings: Settings) -> str:
    """kubectl: the one on PATH, which knows the person's logins, else that of an embedded node."""
    found = shutil.which("kubectl") or str(settings.bin / "kubectl")
    if not Path(found).exists():
        raise GroundError("There is no kubectl on PATH. Install it: https://kubernetes.io/docs/tasks/tools/")
    return found


def pin(kubectl: str, file: Path) -> None:
    """Keeps the current context, and no other, in a kubeconfig of its own.

    A later change of the current context then leads no command to another cluster. Raises GroundError where
    another cluster is pinned already.
    """
    try:
        text = command.ask([kubectl, "config", "view", "--minify", "--flatten", "--raw"])
    except GroundError as error:
        raise GroundError(f"kubectl knows no current context. Set one, or KUBECONFIG. ({error})") from error
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.touch(mode=0o600)
    fresh.write_text(text)
    if file.exists():
        installed, named = (read_name(Kubectl(kubectl, one)) for one in (file, fresh))
        if installed[1] != named[1]:
            fresh.unlink()
            raise GroundError(
                f"This state directory belongs to an installation on {installed[0]} ({installed[1]}); the "
                f"current context is {named[0]} ({named[1]}). Switch back, or set CREWYARD_STATE to another "
                "directory for the other cluster."
            )
    fresh.replace(file)


def read_name(kubectl: Kubectl) -> tuple[str, str]:
    """Name and server of a pinned kubeconfig's context."""
    view = json.loads(kubectl.run("config", "view", "-o", "json"))
    return view["current-context"], view["clusters"][0]["cluster"]["server"]


def read(kubectl: Kubectl) -> Context:
    """The context of a pinned kubeconfig and what answers there. Raises GroundError."""
    name, server = read_name(kubectl)
    try:
        version = json.loads(kubectl.run("get", "--raw", "/version"))
    except KubeError as error:
        raise GroundError(f"The cluster at {server} does not answer: {error}") from error
    return Context(name, server, version["gitVersion"], identity.read(kubectl))


def new_enough(version: str) -> bool:
    """Whether a version such as `v1.33.2-gke.1` can hold our kinds."""
    major, _, rest = version.lstrip("v").partition(".")
    minor = rest.partition(".")[0].rstrip("+")
    return major.isdigit() and minor.isdigit() and (int(major), int(minor)) >= (1, MINOR_MINIMUM)


def confirm(context: Context, environment: Mapping[str, str], doing: str, again: str) -> None:
    """Raises Refused unless CONFIRM names the context. `doing` is what would be done, `again` the command."""
    given = environment.get("CONFIRM", "")
    if given == context.name:
        return
    wrong = f"CONFIRM is {given!r}, the context is {context.name!r}. " if given else ""
    raise Refused(f"{context}\n\n{doing}\n\n{wrong}Nothing was done. To do it:\n  {again}")
