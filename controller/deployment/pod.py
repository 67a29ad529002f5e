"""The two build pods. Pure: equal arguments give equal pods.

`assemble` has no volume, to start fast, and executes no crew code. `dependencies` executes
installations in Kaniko, or in a container of the base image, which have no credentials; another container
pushes the image and continues as `assemble`. Called by `controller.deployment.decide`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from controller.config import ControllerConfig
from controller.deployment import build_pod_env
from controller.deployment.build_result import INSTALL, KANIKO, DependenciesMissing
from controller.deployment.deadlines import STOP_GRACE_SECONDS
from controller.deployment.steps import ANNOTATION_STEP
from controller.owner import controller_reference
from controller.pods import push_secret, security
from controller.pods.placement import BUILD_LIMITS, NOT_DISRUPTED
from crds import kinds, names
from crds.objects import Deployment, Pod, Project

WORKSPACE = "/workspace"
ANNOTATION_SOURCE_KEY = f"{names.GROUP}/source-key"
ANNOTATION_BASE = f"{names.GROUP}/base"
"""Key and digest of the image in which the pod installs dependencies: `<key>@sha256:…`."""
REQUESTS = {"cpu": "50m", "memory": "128Mi"}
LIMITS = {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "4Gi"}
KANIKO_REQUESTS = {"cpu": "100m", "memory": "256Mi"}


def assemble(
    deployment: Deployment,
    project: Project,
    name: str,
    step: int,
    config: ControllerConfig,
    now: float,
    source_key: str | None = None,
    images: Mapping[str, Any] = {},
) -> dict[str, Any]:
    """Return the pod that fetches, checks, plans and, if the dependency image exists, appends and pushes.

    `source_key` is the Deployment's source key; `images` are those that the pod may take.
    """
    env = [
        *build_pod_env.base(deployment, project, {"proven": images}, config, now),
        *build_pod_env.git(deployment, project),
        *build_pod_env.signers(project),
        *push_secret.credential(project, config),
    ]
    container = _service_container("assemble", "assemble", env, config)
    return _pod(deployment, project, name, step, config, {"containers": [container]}, source_key)


def waiting(
    project: Project, name: str, env: list[dict[str, Any]], config: ControllerConfig
) -> dict[str, Any]:
    """Return the pod that waits for a build of the Project, with the command that becomes `assemble`."""
    container = _service_container("assemble", "wait", env, config)
    body = _project_pod(project, name, config, {"containers": [container]})
    # `kubectl drain` evicts only pods that a controller creates again.
    body["metadata"]["ownerReferences"] = [controller_reference(kinds.PROJECT, project)]
    return body


def source_key_of(pods: Iterable[Pod]) -> str | None:
    """Return the source key that a build started with, if its pods record it."""
    return next(
        (
            build.annotations[ANNOTATION_SOURCE_KEY]
            for build in pods
            if ANNOTATION_SOURCE_KEY in build.annotations
        ),
        None,
    )


def base_of(pods: Iterable[Pod]) -> dict[str, str]:
    """Return key and digest of the image in which a build installed dependencies, as the status has them."""
    for build in pods:
        key, at, digest = build.annotations.get(ANNOTATION_BASE, "").partition("@")
        if at:
            return {"baseKey": key, "baseDigest": digest}
    return {}


def dependencies(
    deployment: Deployment,
    project: Project,
    name: str,
    step: int,
    needs: DependenciesMissing,
    config: ControllerConfig,
    now: float,
    source_key: str | None = None,
) -> dict[str, Any]:
    """Return the pod that builds and pushes the dependency image that `needs` names, then the crew's image.

    With a `base_digest`, a container of that image of the project's repository installs the dependencies;
    else Kaniko builds the image. `source_key` is as for `assemble`.
    """
    mount = {"volumeMounts": [{"name": "workspace", "mountPath": WORKSPACE}]}
    request: dict[str, Any] = {"key": needs.key}
    if needs.base_digest:
        request["base"] = {"key": needs.base_key, "digest": needs.base_digest}
    env = build_pod_env.base(deployment, project, {"dependencies": request}, config, now)
    env += [*build_pod_env.git(deployment, project), *build_pod_env.signers(project)]
    index, credential = build_pod_env.index(project), push_secret.credential(project, config)
    source = {**_service_container("source", "source", [*env, *index], config), **mount}
    push = {**_service_container("push", "push", [*env, *credential], config), **mount}
    installer = _install(project, needs, config) if needs.base_digest else _kaniko(project, needs, config)
    spec = {
        "initContainers": [source, {**installer, **mount}],
        "containers": [push],
        "volumes": [{"name": "workspace", "emptyDir": {}}],
    }
    body = _pod(deployment, project, name, step, config, spec, source_key)
    if needs.base_digest:
        body["metadata"]["annotations"][ANNOTATION_BASE] = f"{needs.base_key}@{needs.base_digest}"
        # The crew's runs pull from that registry with their Secrets.
        places, own = config.placements, config.placements.pod_fields(project)[0]
        both = places.build.merged_over(places.for_run(project.plan)).spec(own)
        if "imagePullSecrets" in both:
            body["spec"]["imagePullSecrets"] = both["imagePullSecrets"]
    # The installation is root; source writes the workspace as another user, by its group.
    body["spec"]["securityContext"] = {
        "fsGroup": security.USER_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return body


def _kaniko(project: Project, needs: DependenciesMissing, config: ControllerConfig) -> dict[str, Any]:
    return {
        **_installer(project, config),
        "name": KANIKO,
        "image": config.kaniko_image,
        "command": ["/kaniko/executor"],
        **({"env": wanted} if (wanted := config.egress.kaniko_env(WORKSPACE)) else {}),
        "args": kaniko_arguments(needs.image, config),
    }


def _install(project: Project, needs: DependenciesMissing, config: ControllerConfig) -> dict[str, Any]:
    files = [f"{WORKSPACE}/{name}" for name in ("changed_files.py", "install.sh", "layer.tar")]
    return {
        **_installer(project, config),
        "name": INSTALL,
        "image": f"{config.repository(project.name)}@{needs.base_digest}",
        "command": ["python3", "-I", "-S", *files],
        **({"env": wanted} if (wanted := config.egress.install_env()) else {}),
    }


def _installer(project: Project, config: ControllerConfig) -> dict[str, Any]:
    """Return what both containers that execute installations share: root, and no credential."""
    return {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": security.resources(
            config.placements.build_resources(project)[0], KANIKO_REQUESTS, BUILD_LIMITS
        ),
        "securityContext": security.kaniko_container(),
    }


def kaniko_arguments(image: str, config: ControllerConfig) -> list[str]:
    """Return Kaniko's flags, only those that 1.24.0 and the maintained fork share."""
    host = config.registry.split("/")[0]
    insecure = [f"--insecure-registry={host}", f"--skip-tls-verify-registry={host}"]
    return [
        f"--context=dir://{WORKSPACE}/context",
        f"--dockerfile={WORKSPACE}/Dockerfile",
        "--no-push",
        f"--tar-path={WORKSPACE}/image.tar",
        f"--destination={image}",
        "--cache=false",
        "--compressed-caching=false",
        # Kaniko compresses twice, once for the digest. Docker-format bases keep gzip, at this level too.
        "--compression=zstd",
        "--compression-level=1",
        "--snapshot-mode=redo",
        "--image-download-retry=3",
        # pip's output is the log; Kaniko adds errors only.
        "--verbosity=warn",
        "--log-format=text",
        "--log-timestamp=false",
        *(insecure if config.registry_insecure else []),
        *config.egress.kaniko_arguments(),
    ]


def _service_container(
    name: str, command: str, env: list[dict[str, Any]], config: ControllerConfig
) -> dict[str, Any]:
    return {
        "name": name,
        "image": config.service_image,
        "imagePullPolicy": "IfNotPresent",
        "command": config.egress.command(["python3", "-m", "build", command]),
        "env": [*env, *config.egress.env()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": security.resources(None, REQUESTS, LIMITS),
        "securityContext": security.restricted_container(),
    }


def _pod(
    deployment: Deployment,
    project: Project,
    name: str,
    step: int,
    config: ControllerConfig,
    spec: dict[str, Any],
    source_key: str | None,
) -> dict[str, Any]:
    body = _project_pod(project, name, config, spec)
    metadata = body["metadata"]
    metadata["labels"][names.LABEL_DEPLOYMENT] = deployment.name
    metadata["annotations"] = {**NOT_DISRUPTED, **metadata["annotations"], ANNOTATION_STEP: str(step)}
    if source_key:
        metadata["annotations"][ANNOTATION_SOURCE_KEY] = source_key
    metadata["ownerReferences"] = [controller_reference(kinds.DEPLOYMENT, deployment)]
    body["spec"]["activeDeadlineSeconds"] = build_pod_env.timeout(project, config)
    return body


def _project_pod(
    project: Project, name: str, config: ControllerConfig, spec: dict[str, Any]
) -> dict[str, Any]:
    """Return what all build pods of a Project share."""
    place = config.placements.build
    return {
        "metadata": {
            "name": name,
            "labels": {
                **place.labels,
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_PART_OF: names.MANAGED_BY,
                names.LABEL_COMPONENT: names.COMPONENT_BUILD,
                names.LABEL_PROJECT: project.name,
            },
            "annotations": dict(place.annotations),
        },
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": STOP_GRACE_SECONDS,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": security.restricted_pod(),
            **place.spec(),
            **spec,
        },
    }
