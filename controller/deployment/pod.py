"""The two pods of a build. Pure: the same arguments give the same pods.

`assemble` has no volume, so that it starts fast, and executes nothing of the
crew's. `dependencies` executes installations, in Kaniko, which has no credential
of any kind; what it made is pushed by another container.
"""

from collections.abc import Iterable
from typing import Any

from controller.config import Config
from controller.deployment.deadlines import STOP_GRACE
from controller.deployment.steps import ANNOTATION_STEP
from controller.pods import build_env, push_secret, security
from crds import names
from crds.objects import Deployment, Pod, Project

WORKSPACE = "/workspace"
ANNOTATION_KEY = f"{names.GROUP}/source-key"
REQUESTS = {"cpu": "50m", "memory": "128Mi"}
LIMITS = {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "4Gi"}
KANIKO_REQUESTS = {"cpu": "100m", "memory": "256Mi"}
KANIKO_LIMITS = {"cpu": "2", "memory": "4Gi", "ephemeral-storage": "20Gi"}


def assemble(
    deployment: Deployment,
    project: Project,
    name: str,
    step: int,
    config: Config,
    now: float,
    key: str | None = None,
) -> dict[str, Any]:
    """The pod that fetches, checks, plans and, where the dependency image is there, appends and pushes.

    `key` is the Deployment's source key, remembered by the first pod.
    """
    env = [
        *build_env.base(deployment, project, None, config, now),
        *build_env.git(deployment, project),
        *push_secret.credential(project, config),
    ]
    container = _own("assemble", "assemble", env, config)
    made = _pod(deployment, project, name, step, config, {"containers": [container]})
    if key:
        made["metadata"]["annotations"][ANNOTATION_KEY] = key
    return made


def source_key_of(pods: Iterable[Pod]) -> str | None:
    """The source key with which a build was begun, as far as its pods tell."""
    return next(
        (build.annotations[ANNOTATION_KEY] for build in pods if ANNOTATION_KEY in build.annotations), None
    )


def dependencies(
    deployment: Deployment,
    project: Project,
    name: str,
    step: int,
    key: str,
    image: str,
    config: Config,
    now: float,
) -> dict[str, Any]:
    """The pod that builds and pushes the dependency image `image` of that key."""
    mount = {"volumeMounts": [{"name": "workspace", "mountPath": WORKSPACE}]}
    env = build_env.base(deployment, project, key, config, now)
    fetching = [*env, *build_env.git(deployment, project), *build_env.index(project)]
    source = {**_own("source", "source", fetching, config), **mount}
    push = {**_own("push", "push", [*env, *push_secret.credential(project, config)], config), **mount}
    kaniko = {
        "name": "kaniko",
        "image": config.kaniko_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/kaniko/executor"],
        **({"env": wanted} if (wanted := config.way_out.kaniko_env(WORKSPACE)) else {}),
        "args": kaniko_arguments(image, config),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": security.resources(
            (project.spec.get("build") or {}).get("resources"), KANIKO_REQUESTS, KANIKO_LIMITS
        ),
        "securityContext": security.kaniko_container(),
        **mount,
    }
    spec = {
        "initContainers": [source, kaniko],
        "containers": [push],
        "volumes": [{"name": "workspace", "emptyDir": {}}],
    }
    made = _pod(deployment, project, name, step, config, spec)
    # Kaniko is root; source writes the workspace as the other user, by its group.
    made["spec"]["securityContext"] = {
        "fsGroup": security.USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return made


def kaniko_arguments(image: str, config: Config) -> list[str]:
    """Kaniko's flags, only those that 1.24.0 and the maintained fork have in common."""
    host = config.registry.split("/")[0]
    insecure = [f"--insecure-registry={host}", f"--skip-tls-verify-registry={host}"]
    return [
        f"--context=dir://{WORKSPACE}/context",
        "--no-push",
        f"--tar-path={WORKSPACE}/image.tar",
        f"--destination={image}",
        "--cache=false",
        "--compressed-caching=false",
        "--snapshot-mode=redo",
        "--image-download-retry=3",
        # What pip prints is the log; Kaniko only adds what went wrong.
        "--verbosity=warn",
        "--log-format=text",
        "--log-timestamp=false",
        *(insecure if config.registry_insecure else []),
        *config.way_out.kaniko_arguments(),
    ]


def _own(name: str, work: str, env: list[dict[str, Any]], config: Config) -> dict[str, Any]:
    return {
        "name": name,
        "image": config.service_image,
        "imagePullPolicy": "IfNotPresent",
        "command": config.way_out.command(["python3", "-m", "build", work]),
        "env": [*env, *config.way_out.env()],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": security.resources(None, REQUESTS, LIMITS),
        "securityContext": security.restricted_container(),
    }


def _pod(
    deployment: Deployment, project: Project, name: str, step: int, config: Config, spec: dict[str, Any]
) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {
                names.LABEL_MANAGED_BY: names.MANAGED_BY,
                names.LABEL_PART_OF: names.MANAGED_BY,
                names.LABEL_COMPONENT: names.COMPONENT_BUILD,
                names.LABEL_PROJECT: project.name,
                names.LABEL_DEPLOYMENT: deployment.name,
            },
            "annotations": {ANNOTATION_STEP: str(step)},
            "ownerReferences": [
                {
                    "apiVersion": names.API_VERSION,
                    "kind": "Deployment",
                    "name": deployment.name,
                    "uid": deployment.uid,
                    "controller": True,
                    "blockOwnerDeletion": False,
                }
            ],
        },
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": build_env.timeout(project, config),
            "terminationGracePeriodSeconds": STOP_GRACE,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": security.restricted_pod(),
            **config.pods.build.spec(),
            **spec,
        },
    }
