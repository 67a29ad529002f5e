"""What a finished build pod answered. Pure; called by `controller.deployment.decide`.

A `Failure` is final: building the same source again would not help. `Broken` is
the infrastructure's fault and worth another pod.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crds.objects import Pod
from crds.reasons import BuildReason
from plan.packages.pip_log import INDEX_UNREACHABLE, dependency_failure

_LOG = 3000
_REASONS = frozenset(str(reason) for reason in BuildReason)
_NETWORK = re.compile(
    r"dial tcp|connection refused|i/o timeout|TLS handshake timeout|no such host|50[234] (Bad|Serv|Gate)",
    re.IGNORECASE,
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_KILLED = re.compile(r"exit status 137|signal: killed|No space left on device", re.IGNORECASE)


@dataclass(frozen=True)
class Built:
    """The image is in the registry."""

    image: str
    plan: Mapping[str, Any]
    tree: str
    build_key: str
    dependencies_key: str = ""


@dataclass(frozen=True)
class Needs:
    """The dependency image is missing."""

    key: str
    image: str


@dataclass(frozen=True)
class Done:
    """The dependency image was pushed."""


@dataclass(frozen=True)
class Failure:
    """A final failure."""

    reason: str
    message: str
    hint: str = ""
    log: str = ""


@dataclass(frozen=True)
class Broken:
    """A failure that another pod may not have; `reason` and `message` are used when there is no other."""

    message: str
    reason: str = BuildReason.BUILD_FAILED
    log: str = ""


def of_assemble(pod: Pod) -> Built | Needs | Failure | Broken:
    """The answer of a finished `assemble` pod."""
    general = _of_pod(pod)
    if general:
        return general
    ended = pod.terminated("assemble") or {}
    told = _told(ended)
    outcome = told.get("outcome")
    if outcome == "built" and told.get("image"):
        return Built(
            str(told["image"]),
            told.get("plan") or {},
            str(told.get("tree") or ""),
            str(told.get("build_key") or ""),
            str(told.get("dependencies_key") or ""),
        )
    if outcome == "dependencies" and told.get("dependencies_key") and told.get("dependencies_image"):
        return Needs(str(told["dependencies_key"]), str(told["dependencies_image"]))
    if outcome == "failed":
        return _failure(told)
    return _broken("assemble", ended)


def of_dependencies(pod: Pod) -> Done | Failure | Broken:
    """The answer of a finished `dependencies` pod: of the first of its containers that did not succeed."""
    if pod.phase == "Succeeded":
        return Done()
    general = _of_pod(pod)
    if general:
        return general
    for container in ("source", "kaniko", "push"):
        ended = pod.terminated(container)
        if ended is None:
            return Broken(f"{container} was not run: {pod.status.get('message') or 'no reason given'}")
        if int(ended.get("exitCode") or 0) == 0:
            continue
        told = _told(ended)
        if told.get("outcome") == "failed":
            return _failure(told)
        if container == "kaniko":
            return _of_kaniko(ended)
        reason = BuildReason.REGISTRY_PUSH if container == "push" else BuildReason.BUILD_FAILED
        return _broken(container, ended, reason)
    return Broken("the pod failed although its containers succeeded")


def _of_pod(pod: Pod) -> Failure | Broken | None:
    reason = str(pod.status.get("reason") or "")
    said = str(pod.status.get("message") or reason)
    if reason == "DeadlineExceeded":
        return Failure(
            BuildReason.BUILD_TIMEOUT,
            "the build took longer than its time limit",
            "Raise spec.build.timeout of the Project, or need fewer or prebuilt dependencies.",
            _last_words(pod),
        )
    if reason == "Evicted" and "ephemeral" in said.lower():
        return Failure(
            BuildReason.BUILD_FAILED,
            f"the build needed more disk than it may use: {said}",
            "Raise spec.build.resources.limits.ephemeral-storage of the Project.",
            _last_words(pod),
        )
    if reason:
        return Broken(f"the build pod was stopped: {said}", log=_last_words(pod))
    for status in pod.containers:
        if ((status.get("state") or {}).get("terminated") or {}).get("reason") == "OOMKilled":
            return _out_of_memory(str(status.get("name")), _last_words(pod))
    return None


def _last_words(pod: Pod) -> str:
    """The end of the log of the container that was at work last, as far as the kubelet kept it.

    Where none said anything, which one was at work: a person wants to know where the time went.
    """
    states = [(str(status.get("name")), status.get("state") or {}) for status in pod.containers]
    ends = [(name, state.get("terminated") or {}) for name, state in states if "waiting" not in state]
    said = [ended for _, ended in ends if ended.get("message") and not _told(ended)]
    if said:
        return _log(said[-1]["message"])
    unfinished = [name for name, ended in ends if ended.get("exitCode") != 0]
    return (
        f"{unfinished[0]} was at work and had said nothing" if unfinished else "no container was at work yet"
    )


def _out_of_memory(container: str, log: str) -> Failure:
    return Failure(
        BuildReason.BUILD_OUT_OF_MEMORY,
        f"the build ({container}) used more memory than its limit",
        "Raise spec.build.resources.limits.memory of the Project.",
        log,
    )


def _of_kaniko(ended: Mapping[str, Any]) -> Failure | Broken:
    log = _log(ended.get("message"))
    if _KILLED.search(log):
        if "space" in log.lower():
            hint = "Raise spec.build.resources.limits.ephemeral-storage of the Project."
            return Failure(BuildReason.BUILD_FAILED, "the build ran out of disk", hint, log)
        return _out_of_memory("kaniko", log)
    error = dependency_failure(log)
    passing = error.message == INDEX_UNREACHABLE or _NETWORK.search(log)
    if error.reason == BuildReason.BUILD_FAILED and passing:
        return Broken(error.message, BuildReason.BUILD_FAILED, log)
    return Failure(error.reason, error.message, error.hint, log)


def _failure(told: Mapping[str, Any]) -> Failure:
    reason = str(told.get("reason") or "")
    return Failure(
        reason if reason in _REASONS else BuildReason.BUILD_FAILED,
        str(told.get("message") or "the build pod gave no message"),
        str(told.get("hint") or ""),
        _log(told.get("log")),
    )


def _broken(container: str, ended: Mapping[str, Any], reason: str = BuildReason.BUILD_FAILED) -> Broken:
    told = _told(ended)
    # Words of ours are for people as they are; else it is the end of the log.
    log = _log(told.get("log") if told else ended.get("message"))
    code, why = ended.get("exitCode"), str(told.get("message") or ended.get("reason") or "no reason given")
    lines = [] if told else log.splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), why)
    why_not = str(told.get("reason") or reason)
    return Broken(
        f"{container} ended with exit code {code}: {last}"[:1000],
        why_not if why_not in _REASONS else reason,
        log,
    )


def _log(text: object) -> str:
    """The end of a log, without the colours of a terminal."""
    return _COLOURS.sub("", str(text or ""))[-_LOG:]


def _told(ended: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        found = json.loads(str(ended.get("message") or ""))
    except (ValueError, RecursionError):  # what was executed in the container may have written anything
        return {}
    return found if isinstance(found, dict) else {}
