"""Generated secrets of an installation: the first admin key and the key that signs all tokens.

Called by `deploy`. The cluster stores only the hash of the admin key; the key itself is in a file that only
its owner can read.
"""

import base64
import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from crds import api_keys
from dev import files
from dev.cluster.kube_client import KubeApi
from dev.progress import StepProgress
from dev.settings import Settings

SYSTEM_NAMESPACE = "crewyard-system"
_SECRETS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/secrets"


def key_record(text: str) -> str:
    """Return the JSON record of the admin key `text` that the API server reads."""
    entry = {
        "id": api_keys.key_id_of(text),
        "hash": api_keys.hash_of(text),
        "name": "first admin key",
        "scopes": ["admin"],
        "projects": None,
        "plan": "enterprise",
    }
    return json.dumps([entry])


def generated(file: Path) -> str:
    """Return the secret in a file that only its owner can read; generate it once."""
    if not file.exists():
        files.write(file, secrets.token_hex(16), files.PRIVATE_MODE)
    return file.read_text()


def create_secret(
    kube: KubeApi,
    name: str,
    values: Mapping[str, str],
    labels: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Create a Secret unless there is one of this name. Return whether it was created."""
    if kube.get(f"{_SECRETS}/{name}") is not None:
        return False
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": SYSTEM_NAMESPACE, "labels": dict(labels)},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }
    return kube.create(_SECRETS, body)


def admin_key(settings: Settings) -> tuple[str, bool]:
    """Return the admin key, and whether this call generated it."""
    file = settings.admin_key
    if file.exists():
        return file.read_text().strip(), False
    text = api_keys.generate().text
    files.write(file, text + "\n", files.PRIVATE_MODE)
    return text, True


def ensure_namespace(kube: KubeApi) -> None:
    """Create the namespace of the service if there is none."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}
    if kube.get(f"/api/v1/namespaces/{SYSTEM_NAMESPACE}") is None:
        kube.create("/api/v1/namespaces", namespace)


def ensure(
    settings: Settings,
    kube: KubeApi,
    progress: StepProgress,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Create the missing Secrets with these labels; leave existing ones unchanged."""
    ensure_namespace(kube)
    create_secret(kube, "crewyard-tokens", {"key": secrets.token_hex(32)}, labels)
    text, created = admin_key(settings)
    if created:
        progress.print_line(
            f"The first admin key (shown only now; stored in {settings.admin_key}):\n  {text}"
        )
    # A concurrent installation may create it first.
    if create_secret(kube, "crewyard-admin-key", {"keys.json": key_record(text)}, labels):
        return
    if created:
        progress.print_line(
            "The cluster has the hash of an older admin key, so the new key is not valid. To use it: "
            f"kubectl -n {SYSTEM_NAMESPACE} delete secret crewyard-admin-key && make deploy"
        )
