"""Environment variables of service containers in build pods (docs/protocol.md). Pure.

Each container gets only what it needs: registry credentials never go to `source`, those of a package index
only there, and the installation gets none. Called by `controller.deployment.pod`.
"""

from collections.abc import Mapping
from typing import Any

from controller.config import ControllerConfig
from controller.deployment.source_key import own_dockerfile, own_requirements, private_index
from controller.pods import push_secret
from controller.pods.env import from_secret, json_env
from crds import limits, pod_tokens
from crds.objects import Deployment, Project
from crds.secrets.use import signers_reference

SOURCE_LIMITS = ("context_bytes", "unpacked_bytes", "entries", "ratio")
"""Limits of the source that a build enforces; passed in its request."""
TOKEN_MARGIN_SECONDS = 300
"""Life of a build token beyond the pod's deadlines, for the clocks of two machines."""
_GIT_VARIABLES = (
    ("GIT_USERNAME", "username"),
    ("GIT_PASSWORD", "password"),
    ("GIT_BEARER_TOKEN", "bearerToken"),
    ("GIT_CA_CRT", "ca.crt"),
    ("GIT_IDENTITY", "identity"),
    ("GIT_KNOWN_HOSTS", "known_hosts"),
)

_SIGNER_VARIABLES = (
    ("GIT_ALLOWED_SIGNERS", "allowed_signers"),
    ("GIT_OPENPGP_KEYS", "openpgp.asc"),
)
_INDEX_VARIABLES = (
    ("PIP_INDEX_URL", "index-url"),
    ("PIP_EXTRA_INDEX_URL", "extra-index-url"),
    ("INDEX_USERNAME", "username"),
    ("INDEX_PASSWORD", "password"),
)


def timeout(project: Project, config: ControllerConfig) -> int:
    """Return the deadline of one build pod in seconds."""
    return limits.build_timeout(project, config.timing.build_timeout, config.limits_of(project))


def build_request(
    deployment: Deployment, project: Project, step: Mapping[str, Any], config: ControllerConfig
) -> dict[str, Any]:
    """Return the content of CREWYARD_BUILD (docs/protocol.md); `step` is what only one kind of pod gets."""
    git = deployment.spec["source"].get("git")
    source = {"git": {"path": "", **git}} if git else {"archive": deployment.spec["source"]["archive"]}
    request: dict[str, Any] = {
        "namespace": config.namespace,
        "project": project.name,
        "deployment": deployment.name,
        "source": source,
        "crew": deployment.spec.get("crew"),
        "registry": push_secret.registry(project, config),
        "base_images": dict(config.base_images),
        "seconds": timeout(project, config),
        "network": {"allow": list(config.net_allow), "deny": list(config.net_deny)},
        "limits": {name: getattr(config.limits, name) for name in SOURCE_LIMITS},
        "image_bytes": config.limits_of(project).image_bytes,
    }
    if index_secret := private_index(project):
        request["private_index"] = index_secret
    if own := own_dockerfile(project):
        request["dockerfile"] = own
    if config.dockerfile_images:
        request["dockerfile_images"] = list(config.dockerfile_images)
        # A prefix may cover the images of other teams' crews.
        if len(config.installation_namespaces) > 1:
            request["namespaces"] = list(config.installation_namespaces)
    if config.install_in_base:
        request["install_in_base"] = True
    if added := own_requirements(project):
        request["requirements"] = added
    if (project.git or {}).get("verify"):
        request["verify"] = True
    return {**request, **step}


def of_pod(config: ControllerConfig) -> list[dict[str, Any]]:
    """Return the variables of every service container that no build decides."""
    return [
        *config.api_address.build_env(),
        {"name": "CREWYARD_CONTROLLER_URL", "value": config.report_url},
        {"name": "CREWYARD_POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "CREWYARD_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]


def of_build(
    deployment: Deployment, project: Project, step: Mapping[str, Any], config: ControllerConfig, now: float
) -> list[dict[str, str]]:
    """Return the variables of a build, without secrets but its token; `now` dates the token."""
    expires = int(now) + config.timing.unschedulable + timeout(project, config) + TOKEN_MARGIN_SECONDS
    token = pod_tokens.mint(
        config.token_key, "build", config.namespace, deployment.name, deployment.uid, expires
    )
    request = build_request(deployment, project, step, config)
    return [
        {"name": "CREWYARD_DEPLOYMENT", "value": deployment.name},
        {"name": "CREWYARD_TOKEN", "value": token},
        {"name": "CREWYARD_BUILD", "value": json_env(request)},
    ]


def base(
    deployment: Deployment, project: Project, step: Mapping[str, Any], config: ControllerConfig, now: float
) -> list[dict[str, Any]]:
    """Return variables of every service container; `step` as for `build_request`."""
    return [*of_pod(config), *of_build(deployment, project, step, config, now)]


def git(deployment: Deployment, project: Project) -> list[dict[str, Any]]:
    """Return git credentials of the Project, only for its own repository: no other host gets them."""
    wanted = deployment.spec["source"].get("git") or {}
    return own_git(project) if wanted.get("url") == (project.git or {}).get("url") else []


def own_git(project: Project) -> list[dict[str, Any]]:
    """Return git credentials of the Project for its own repository."""
    secret = ((project.git or {}).get("secretRef") or {}).get("name")
    return [from_secret(variable, secret, key) for variable, key in _GIT_VARIABLES] if secret else []


def signers(project: Project) -> list[dict[str, Any]]:
    """Return the public keys that may sign the Project's commits."""
    reference = signers_reference(project)
    if reference is None:
        return []
    return [from_secret(variable, reference.name, key) for variable, key in _SIGNER_VARIABLES]


def index(project: Project) -> list[dict[str, Any]]:
    """Return the private package index of the Project, only for the container that downloads from it."""
    secret = ((project.spec.get("build") or {}).get("secretRef") or {}).get("name")
    if not secret:
        return []
    variables = [from_secret(variable, secret, key) for variable, key in _INDEX_VARIABLES]
    # Without its URL the pod must fail instead of using the public index.
    variables[0]["valueFrom"]["secretKeyRef"]["optional"] = False
    return variables
