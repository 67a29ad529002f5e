"""Identity of the cluster behind a context, independent of names and addresses.

Names and addresses are reused: a tunnel can lead to another cluster, or a cluster is created again on the
same port. The uid of the namespace kube-system lives exactly as long as its cluster. `dev.current.current`
records it at the first confirmation and compares it in every later command.
"""

from pathlib import Path

from dev import files
from dev.cluster.kube_client import KubeApi, KubeApiError
from dev.errors import DevClusterError
from dev.settings import Settings

_PATH = "/api/v1/namespaces/kube-system"


def read_uid(kubectl: KubeApi) -> str:
    """Return the cluster's uid. Raises DevClusterError if the user may not read it."""
    try:
        return str(kubectl.call("GET", _PATH)["metadata"]["uid"])
    except KubeApiError as error:
        raise DevClusterError(
            "The namespace kube-system cannot be read; its uid identifies the cluster. Your user "
            f"needs to get namespaces. ({error})"
        ) from error


def _record_file(own: Settings) -> Path:
    return own.state / "cluster-uid"


def record(own: Settings, uid: str) -> None:
    """Write the uid of the confirmed cluster."""
    files.write(_record_file(own), f"{uid}\n")


def remove_record(own: Settings) -> None:
    """Delete the record of an earlier installation."""
    _record_file(own).unlink(missing_ok=True)


def check(own: Settings, uid: str, context: str) -> None:
    """Raise DevClusterError if the context leads to another cluster than the confirmed one."""
    try:
        recorded = _record_file(own).read_text().strip()
    except OSError:
        # Not confirmed yet, or confirmed by a version that did not record the uid.
        return
    if recorded == uid:
        return
    choice_file = own.state.parent / "cluster"
    raise DevClusterError(
        f"The context {context} leads to another cluster than the one that was confirmed: the uid of its "
        f"namespace kube-system is {uid}, and was {recorded}. Nothing was changed. Point the context to that "
        "cluster, or set CREWYARD_STATE to another directory for this one. If that cluster no longer exists, "
        f"remove its records: rm -r {own.state} {choice_file}"
    )
