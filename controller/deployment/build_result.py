"""Result of a finished build pod. Pure. Called by `controller.deployment.decide`.

A `BuildFailure` is final: building the same source again would not help. `BuildPodBroken` is an
infrastructure error; another pod may succeed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controller.pods.termination import exceeded_disk_limit, termination_message
from crds.objects import Pod
from crds.reasons import BuildReason
from egress.git.commit_subject import subject
from plan.packages.pip_log import INDEX_UNREACHABLE, dependency_failure

KANIKO, INSTALL = "kaniko", "install"
"""Containers that install dependencies; a pod has one of them."""
_MAX_LOG_LENGTH = 3000
_MAX_STAGE_SECONDS = 1e7
_REASONS = frozenset(str(reason) for reason in BuildReason)
_NETWORK_ERROR = re.compile(
    r"dial tcp|connection (refused|reset by peer)|i/o timeout|TLS handshake timeout|no such host"
    r"|50[0234] (Internal|Bad|Serv|Gate)|429 Too Many|TOOMANYREQUESTS",
    re.IGNORECASE,
)
_ANSI_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_KILLED = re.compile(r"exit status 137|signal: killed|No space left on device", re.IGNORECASE)


@dataclass(frozen=True)
class ImageBuilt:
    """Image in the registry."""

    image: str
    plan: Mapping[str, Any]
    tree: str
    build_key: str
    dependencies_key: str = ""
    dependencies_digest: str = ""
    """Of its dependency image; empty from pods of an earlier version, which believed tags."""
    subject: str = ""
    """Of its commit; empty from pods of an earlier version, and without a commit."""


@dataclass(frozen=True)
class DependenciesMissing:
    """Missing dependency image.

    With a `base_key`, a container of the image without dependencies can install them; the repository of the
    project has it as `base_digest`, or needs it if that is empty.
    """

    key: str
    image: str
    base_key: str = ""
    base_digest: str = ""


@dataclass(frozen=True)
class DependenciesPushed:
    """Pushed dependency image; without key and digest from pods of an earlier version."""

    key: str = ""
    digest: str = ""


@dataclass(frozen=True)
class BuildFailure:
    """Final failure of a build."""

    reason: str
    message: str
    hint: str = ""
    log: str = ""


@dataclass(frozen=True)
class BuildPodBroken:
    """Infrastructure failure; `reason` and `message` are used if no retry is left."""

    message: str
    reason: str = BuildReason.BUILD_FAILED
    log: str = ""


def of_assemble(
    pod: Pod, repository: str
) -> ImageBuilt | DependenciesMissing | BuildFailure | BuildPodBroken:
    """Return the result of a finished `assemble` pod, which names images of the Project's repository only."""
    general = _pod_failure(pod)
    if general:
        return general
    ended = pod.terminated("assemble") or {}
    result = termination_message(ended)
    outcome = result.get("outcome")
    if (built := _image_built(result, repository)) is not None:
        return built
    if outcome == "dependencies" and result.get("dependencies_key") and result.get("dependencies_image"):
        key, image = str(result["dependencies_key"]), str(result["dependencies_image"])
        if not _SHA256.fullmatch(key) or image != f"{repository}:deps-{key}":
            return _foreign_image(repository, image)
        return DependenciesMissing(key, image, *_base(result.get("base")))
    if outcome == "failed":
        return _failure(result)
    return _broken("assemble", ended, result)


def reported_seconds(pod: Pod) -> dict[str, float]:
    """Return the seconds of the stages in which a finished pod assembled the image."""
    ended = pod.terminated("assemble") or pod.terminated("push") or {}
    reported = termination_message(ended).get("seconds")
    if not isinstance(reported, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in reported.items()
        if isinstance(value, int | float) and 0 <= value < _MAX_STAGE_SECONDS
    }


def of_dependencies(
    pod: Pod, repository: str
) -> ImageBuilt | DependenciesPushed | BuildFailure | BuildPodBroken:
    """Return the result of a finished `dependencies` pod: of its first container that failed.

    Where it could not assemble the image after the push, a pod of its own does that.
    """
    if pod.phase == "Succeeded":
        pushed = termination_message(pod.terminated("push") or {})
        if (built := _image_built(pushed, repository)) is not None:
            return built
        key, digest = str(pushed.get("key")), _digest(pushed.get("digest"))
        return DependenciesPushed(key, digest) if _SHA256.fullmatch(key) and digest else DependenciesPushed()
    general = _pod_failure(pod)
    if general:
        return general
    names = [str(container.get("name")) for container in pod.spec.get("initContainers") or ()]
    installer = INSTALL if INSTALL in names else KANIKO
    for container in ("source", installer, "push"):
        ended = pod.terminated(container)
        if ended is None:
            return BuildPodBroken(
                f"container {container} did not run: {pod.status.get('message') or 'no reason given'}"
            )
        if int(ended.get("exitCode") or 0) == 0:
            continue
        # The message of the installation is a log, and what it executes can write it.
        result = {} if container == installer else termination_message(ended)
        if result.get("outcome") == "failed":
            return _failure(result)
        # From 128 on the node or its runtime ended the container: both end with 1, and Kaniko with 2 when a
        # deletion of its pod stops it.
        if container == installer and int(ended["exitCode"]) < 128 and not pod.deleting:
            return _installation_failure(ended, installer)
        reason = BuildReason.REGISTRY_PUSH if container == "push" else BuildReason.BUILD_FAILED
        return _broken(container, ended, result, reason)
    return BuildPodBroken("the pod failed although its containers succeeded")


def _image_built(result: Mapping[str, Any], repository: str) -> ImageBuilt | BuildPodBroken | None:
    plan = result.get("plan")
    if result.get("outcome") != "built" or not result.get("image") or not isinstance(plan, dict):
        return None
    if not _is_image_of(repository, str(result["image"])):
        return _foreign_image(repository, result["image"])
    return ImageBuilt(
        str(result["image"]),
        plan,
        str(result.get("tree") or ""),
        str(result.get("build_key") or ""),
        str(result.get("dependencies_key") or ""),
        _digest(result.get("dependencies_digest")),
        subject(str(result.get("message") or "")),
    )


def _is_image_of(repository: str, image: str) -> bool:
    """Return whether it is an image of the repository by digest: a tag could be moved later."""
    name, _, digest = image.partition("@")
    return name == repository and _DIGEST.fullmatch(digest) is not None


def _digest(reported: object) -> str:
    """Return a reported digest; empty if it is none."""
    return str(reported) if _DIGEST.fullmatch(str(reported)) else ""


def _base(reported: object) -> tuple[str, str]:
    """Return key and digest of a reported base image; the caller compares them with what is proven."""
    if not isinstance(reported, dict) or not _SHA256.fullmatch(str(reported.get("key"))):
        return "", ""
    return str(reported["key"]), _digest(reported.get("digest"))


def _foreign_image(repository: str, image: object) -> BuildPodBroken:
    """Return the result of a forged report, or of a registry that changed during the build: try again."""
    return BuildPodBroken(
        f"the build pod reported {str(image)[:200]!r}, which is not an image of {repository}"
    )


def _pod_failure(pod: Pod) -> BuildFailure | BuildPodBroken | None:
    reason = str(pod.status.get("reason") or "")
    message = str(pod.status.get("message") or reason)
    if reason == "DeadlineExceeded":
        return BuildFailure(
            BuildReason.BUILD_TIMEOUT,
            "the build exceeded its time limit",
            "Raise spec.build.timeout of the Project, or use fewer or prebuilt dependencies.",
            _log_tail(pod),
        )
    if reason == "Evicted" and exceeded_disk_limit(message):
        return BuildFailure(
            BuildReason.BUILD_FAILED,
            f"the build exceeded its disk limit: {message}",
            "Raise spec.build.resources.limits.ephemeral-storage of the Project.",
            _log_tail(pod),
        )
    if reason:
        return BuildPodBroken(f"the build pod was stopped: {message}", log=_log_tail(pod))
    for status in pod.containers:
        if ((status.get("state") or {}).get("terminated") or {}).get("reason") == "OOMKilled":
            return _out_of_memory(str(status.get("name")), _log_tail(pod))
    return None


def _log_tail(pod: Pod) -> str:
    """Return the end of the log of the last running container, as far as the kubelet kept it.

    Without any output, return which container was running: users want to know where the time went.
    """
    states = [(str(status.get("name")), status.get("state") or {}) for status in pod.containers]
    ends = [(name, state.get("terminated") or {}) for name, state in states if "waiting" not in state]
    with_output = [ended for _, ended in ends if ended.get("message") and not termination_message(ended)]
    if with_output:
        return _log(with_output[-1]["message"])
    unfinished = [name for name, ended in ends if ended.get("exitCode") != 0]
    return (
        f"container {unfinished[0]} was running and produced no output"
        if unfinished
        else "no container had started"
    )


def _out_of_memory(container: str, log: str) -> BuildFailure:
    return BuildFailure(
        BuildReason.BUILD_OUT_OF_MEMORY,
        f"the build ({container}) used more memory than its limit",
        "Raise spec.build.resources.limits.memory of the Project.",
        log,
    )


def _installation_failure(ended: Mapping[str, Any], container: str) -> BuildFailure | BuildPodBroken:
    log = _log(ended.get("message"))
    if _KILLED.search(log):
        if "space" in log.lower():
            hint = "Raise spec.build.resources.limits.ephemeral-storage of the Project."
            return BuildFailure(BuildReason.BUILD_FAILED, "the build ran out of disk space", hint, log)
        return _out_of_memory(container, log)
    error = dependency_failure(log)
    transient = error.message == INDEX_UNREACHABLE or _NETWORK_ERROR.search(log)
    if error.reason == BuildReason.BUILD_FAILED and transient:
        return BuildPodBroken(error.message, BuildReason.BUILD_FAILED, log)
    return BuildFailure(error.reason, error.message, error.hint, log)


def _failure(result: Mapping[str, Any]) -> BuildFailure:
    reason = str(result.get("reason"))
    return BuildFailure(
        reason if reason in _REASONS else BuildReason.BUILD_FAILED,
        str(result.get("message") or "the build pod reported no message"),
        str(result.get("hint") or ""),
        _log(result.get("log")),
    )


def _broken(
    container: str,
    ended: Mapping[str, Any],
    result: Mapping[str, Any],
    reason: str = BuildReason.BUILD_FAILED,
) -> BuildPodBroken:
    # A message of our containers is readable text; otherwise it is the end of the log.
    log = _log(result.get("log") if result else ended.get("message"))
    code, why = ended.get("exitCode"), str(result.get("message") or ended.get("reason") or "no reason given")
    lines = [] if result else log.splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), why)
    why_not = str(result.get("reason") or reason)
    return BuildPodBroken(
        f"{container} ended with exit code {code}: {last}"[:1000],
        why_not if why_not in _REASONS else reason,
        log,
    )


def _log(text: object) -> str:
    """Return the end of a log, without ANSI colours."""
    return _ANSI_COLOURS.sub("", str(text or ""))[-_MAX_LOG_LENGTH:]
