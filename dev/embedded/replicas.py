"""Backends of `make up HA=1`: PostgreSQL, an S3 server and Redis for two replicas of the service.

The choice is recorded until `make up HA=0`, so later commands keep it. Called by `dev.embedded.cluster`.
"""

from pathlib import Path

from dev import go_build, packages
from dev.cluster import credentials
from dev.cluster.kube_client import KubeApi
from dev.embedded.components import object_store, postgresql, redis
from dev.process.program import ProcessSpec
from dev.progress import StepProgress
from dev.settings import REPOSITORY, Settings

NAMES = ("postgresql", "redis", "object-store")
"""The processes, in start order."""
COMPONENT = REPOSITORY / "manifests" / "components" / "replicas"
PACKAGES = {program: packages.TEST_PACKAGES[program] for program in (packages.POSTGRES, "redis-server")}
_BUDGET = f"/apis/policy/v1/namespaces/{credentials.SYSTEM_NAMESPACE}/poddisruptionbudgets/crewyard-api"


def _marker(settings: Settings) -> Path:
    return settings.data / "replicas" / "enabled"


def enabled(settings: Settings) -> bool:
    """Return whether the last `up` with a choice asked for replicas."""
    return _marker(settings).exists()


def record(settings: Settings, choice: bool) -> None:
    """Write the choice of an `up`, once its servers run."""
    marker = _marker(settings)
    if choice:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    else:
        marker.unlink(missing_ok=True)


def password(settings: Settings) -> str:
    """Return the password of the three servers, generated once."""
    return credentials.generated(settings.data / "replicas" / "password")


def prepare(settings: Settings, progress: StepProgress) -> list[ProcessSpec]:
    """Install the servers, create their data, and return their processes. Raises CommandFailed."""
    packages.install(settings, progress, PACKAGES)
    versitygw = go_build.build(settings, go_build.VERSITYGW, progress)
    word = password(settings)
    postgresql.ensure(settings, word)
    object_store.ensure(settings)
    return [
        postgresql.process_spec(settings),
        redis.process_spec(settings, word),
        object_store.process_spec(settings, versitygw, word),
    ]


def secret_values(word: str) -> dict[str, dict[str, str]]:
    """Return the entries of the Secrets that the component names."""
    return {
        "crewyard-database": {"url": postgresql.url(word)},
        "crewyard-rate-limit": {"url": redis.url(word)},
        "crewyard-bucket": object_store.environment(word),
    }


def ensure_secrets(settings: Settings, kube: KubeApi) -> None:
    """Create the missing Secrets of the three servers."""
    credentials.ensure_namespace(kube)
    for name, values in secret_values(password(settings)).items():
        credentials.create_secret(kube, name, values)


def remove_budget(kube: KubeApi) -> None:
    """Delete the PodDisruptionBudget: with one replica it would block every drain."""
    if kube.get(_BUDGET) is not None:
        kube.call("DELETE", _BUDGET)
