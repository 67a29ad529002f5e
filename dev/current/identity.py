"""Which cluster it is that answers, whatever its context and its address are called.

Names and addresses come back: a tunnel leads elsewhere, a cluster is made
anew on the same port. The uid of the namespace kube-system lives exactly as
long as a cluster does. Noted when a person first confirms, compared by every
later command of `dev.current.current`.
"""

from pathlib import Path

from dev.cluster.kube_client import KubeApi, KubeApiError
from dev.errors import DevClusterError
from dev.settings import Settings

_PATH = "/api/v1/namespaces/kube-system"


def read_uid(kubectl: KubeApi) -> str:
    """The cluster's uid. Raises GroundError where the user may not read it."""
    try:
        return str(kubectl.call("GET", _PATH)["metadata"]["uid"])
    except KubeApiError as error:
        raise DevClusterError(
            "The namespace kube-system cannot be read, by whose uid a cluster is known again: your user "
            f"needs to get namespaces. ({error})"
        ) from error


def _record_file(own: Settings) -> Path:
    return own.state / "cluster-uid"


def record(own: Settings, uid: str) -> None:
    """Keeps the uid of the cluster that a person has confirmed."""
    own.state.mkdir(parents=True, exist_ok=True)
    _record_file(own).write_text(f"{uid}\n")


def remove_record(own: Settings) -> None:
    """Drops what an earlier installation left."""
    _record_file(own).unlink(missing_ok=True)


def check(own: Settings, uid: str, context: str) -> None:
    """Raises GroundError where the context leads to another cluster than the one that was confirmed."""
    try:
        recorded = _record_file(own).read_text().strip()
    except OSError:
        # Nobody has confirmed yet, or it was before uids were noted.
        return
    if recorded == uid:
        return
    choice_file = own.state.parent / "cluster"
    raise DevClusterError(
        f"The context {context} leads to another cluster than the one that was confirmed: the uid of its "
        f"namespace kube-system is {uid}, and was {recorded}. Nothing was done. Lead the context back to that "
        "cluster, or set CREWYARD_STATE to another directory for this one. If that cluster is gone for good, "
        f"forget it: rm -r {own.state} {choice_file}"
    )
