"""What the end of a build pod says: its result, a final failure, or that another pod may succeed."""

import json

import pytest

from controller.deployment.build_result import (
    BuildFailure,
    BuildPodBroken,
    DependenciesMissing,
    DependenciesPushed,
    ImageBuilt,
    of_assemble,
    of_dependencies,
    reported_seconds,
)
from crds.objects import Pod
from tests.testbed.public_index import PUBLIC_INDEX

REPOSITORY = "registry:5000/team/crews/demo"
IMAGE = f"{REPOSITORY}@sha256:" + "ab" * 32
DIGEST = "sha256:" + "de" * 32
KEY = "5c" * 32
BUILT = {
    "outcome": "built",
    "image": IMAGE,
    "plan": {"framework": "python"},
    "tree": "t",
    "build_key": "b",
    "dependencies_key": KEY,
    "dependencies_digest": DIGEST,
}
NEEDS = {
    "outcome": "dependencies",
    "dependencies_key": KEY,
    "dependencies_image": f"{REPOSITORY}:deps-{KEY}",
}
FAILED = {"outcome": "failed", "reason": "GitAuthFailed", "message": "m", "hint": "h", "log": "l"}
LONG_LOG = "first" + "x" * 3000
TIMEOUT_HINT = "Raise spec.build.timeout of the Project, or use fewer or prebuilt dependencies."
DISK_HINT = "Raise spec.build.resources.limits.ephemeral-storage of the Project."
MEMORY_HINT = "Raise spec.build.resources.limits.memory of the Project."
SUCCEEDED = {"exitCode": 0}


def ended(code, message="", **more):
    """Return the end of a container; a mapping is its report, as JSON."""
    text = json.dumps(message) if isinstance(message, dict) else message
    return {"exitCode": code, "message": text, **more}


def ended_pod(containers, phase="Failed", deleting=False, **status):
    """Return a pod; `containers` are the `terminated` states, or None for one that runs."""
    states = [
        {"name": name, "state": {"running": {}} if state is None else {"terminated": state}}
        for name, state in containers.items()
    ]
    metadata = {"name": "x", **({"deletionTimestamp": "2026-11-21T12:00:00Z"} if deleting else {})}
    return Pod({"metadata": metadata, "status": {"phase": phase, "containerStatuses": states, **status}})


def foreign(image):
    return BuildPodBroken(f"the build pod reported {image!r}, which is not an image of {REPOSITORY}")


@pytest.mark.parametrize(
    ("end", "result"),
    [
        (ended(0, BUILT), ImageBuilt(IMAGE, {"framework": "python"}, "t", "b", KEY, DIGEST)),
        (
            ended(0, {**BUILT, "message": "Ask for\x1b tides\nmore"}),
            ImageBuilt(IMAGE, {"framework": "python"}, "t", "b", KEY, DIGEST, "Ask for  tides"),
        ),
        (
            ended(0, {"outcome": "built", "image": IMAGE, "plan": {}}),
            ImageBuilt(IMAGE, {}, "", "", "", ""),
        ),
        (ended(0, {**BUILT, "image": "x" * 300}), foreign("x" * 200)),
        (ended(0, NEEDS), DependenciesMissing(KEY, f"{REPOSITORY}:deps-{KEY}")),
        (ended(0, {**NEEDS, "dependencies_image": "x"}), foreign("x")),
        (ended(0, FAILED), BuildFailure("GitAuthFailed", "m", "h", "l")),
        (
            ended(0, {"outcome": "failed"}),
            BuildFailure("BuildFailed", "the build pod reported no message", "", ""),
        ),
        (
            ended(75, {"outcome": "trouble", "reason": "RegistryPush", "message": "full", "log": "l\nlast"}),
            BuildPodBroken("assemble ended with exit code 75: full", "RegistryPush", "l\nlast"),
        ),
        (
            ended(75, {"outcome": "trouble", "reason": "Strange", "message": "full"}),
            BuildPodBroken("assemble ended with exit code 75: full", "BuildFailed", ""),
        ),
        (
            ended(1, "Traceback\n KeyError: x \n \n"),
            BuildPodBroken(
                "assemble ended with exit code 1: KeyError: x", log="Traceback\n KeyError: x \n \n"
            ),
        ),
        (ended(1, reason="Error"), BuildPodBroken("assemble ended with exit code 1: Error")),
        (ended(1), BuildPodBroken("assemble ended with exit code 1: no reason given")),
        (
            ended(1, "y" * 4000),
            BuildPodBroken(f"assemble ended with exit code 1: {'y' * 967}", log="y" * 3000),
        ),
    ],
)
def test_result_of_an_assemble_pod(end, result):
    assert of_assemble(ended_pod({"assemble": end}, "Succeeded"), REPOSITORY) == result


@pytest.mark.parametrize(
    "words",
    [
        {**BUILT, "image": None},
        {**BUILT, "plan": None},
        {**BUILT, "plan": ["framework"]},
        {**BUILT, "plan": {"smoke": {"input": float("nan")}}},
        {**BUILT, "plan": {"smoke": {"input": float("inf")}}},
        {**BUILT, "plan": {"smoke": {"input": 10**400}}},
        {**BUILT, "outcome": "pushed"},
        {**NEEDS, "dependencies_key": ""},
        {**NEEDS, "dependencies_image": None},
        {**NEEDS, "outcome": "built"},
        {},
    ],
)
def test_incomplete_report_of_an_assemble_pod_retries_the_build(words):
    pod = ended_pod({"assemble": ended(0, words, reason="Completed")}, "Succeeded")
    assert of_assemble(pod, REPOSITORY).message.startswith("assemble ended with exit code 0: ")


def test_assemble_pod_without_a_status_of_its_container_retries_the_build():
    assert isinstance(of_assemble(ended_pod({}), REPOSITORY), BuildPodBroken)


@pytest.mark.parametrize(
    ("reported", "seconds"),
    [
        ({"fetch": 1, "plan": 0, "assemble": 2.5}, {"fetch": 1.0, "plan": 0.0, "assemble": 2.5}),
        ({"fetch": -0.1, "plan": "3", "assemble": 1e7, "more": float("nan")}, {}),
        ([1], {}),
        (None, {}),
    ],
)
def test_only_plausible_seconds_of_stages_are_taken(reported, seconds):
    assert reported_seconds(ended_pod({"assemble": ended(0, {"seconds": reported})})) == seconds
    assert reported_seconds(ended_pod({"assemble": None})) == {}


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ({"key": KEY, "digest": DIGEST}, DependenciesPushed(KEY, DIGEST)),
        ({"key": KEY}, DependenciesPushed()),
        ({"digest": DIGEST}, DependenciesPushed()),
        ({"key": KEY[1:], "digest": DIGEST}, DependenciesPushed()),
        ({"key": KEY, "digest": DIGEST[:-1]}, DependenciesPushed()),
        ({"key": KEY, "digest": DIGEST.replace("sha256", "sha512")}, DependenciesPushed()),
        ({}, DependenciesPushed()),
    ],
)
def test_pushed_image_has_key_and_digest_or_none_of_them(words, result):
    pod = ended_pod({"source": SUCCEEDED, "kaniko": SUCCEEDED, "push": ended(0, words)}, "Succeeded")
    assert of_dependencies(pod, REPOSITORY) == result


def test_dependencies_pod_that_assembled_has_built_the_image():
    def result(**words):
        pod = {"source": SUCCEEDED, "kaniko": SUCCEEDED, "push": ended(0, {**BUILT, **words})}
        return of_dependencies(ended_pod(pod, "Succeeded"), REPOSITORY)

    assert result() == of_assemble(ended_pod({"assemble": ended(0, BUILT)}, "Succeeded"), REPOSITORY)
    assert isinstance(result(), ImageBuilt)
    assert result(image=BUILT["image"].replace(REPOSITORY, f"{REPOSITORY}-2")).message.startswith(
        "the build pod reported"
    )
    assert result(plan=None) == DependenciesPushed()


def test_succeeded_dependencies_pod_without_a_report_has_pushed():
    assert of_dependencies(ended_pod({}, "Succeeded"), REPOSITORY) == DependenciesPushed()


@pytest.mark.parametrize(
    ("containers", "result"),
    [
        ({"source": ended(1, FAILED)}, BuildFailure("GitAuthFailed", "m", "h", "l")),
        ({"source": ended(1, "x")}, BuildPodBroken("source ended with exit code 1: x", log="x")),
        (
            {"source": ended(75, {"outcome": "trouble", "reason": "Strange", "message": "m"})},
            BuildPodBroken("source ended with exit code 75: m"),
        ),
        ({"source": SUCCEEDED, "kaniko": None}, BuildPodBroken("container kaniko did not run: stopped")),
        (
            {"source": SUCCEEDED, "kaniko": SUCCEEDED, "push": ended(1, "refused")},
            BuildPodBroken("push ended with exit code 1: refused", "RegistryPush", "refused"),
        ),
        (
            {"source": {}, "kaniko": {}, "push": ended(75, {"outcome": "trouble", "reason": "Strange"})},
            BuildPodBroken("push ended with exit code 75: no reason given", "RegistryPush"),
        ),
        (
            {"source": SUCCEEDED, "kaniko": SUCCEEDED, "push": SUCCEEDED},
            BuildPodBroken("the pod failed although its containers succeeded"),
        ),
    ],
)
def test_first_failed_container_of_a_dependencies_pod_is_its_result(containers, result):
    assert of_dependencies(ended_pod(containers, message="stopped"), REPOSITORY) == result


@pytest.mark.parametrize("name", ["kaniko", "install"])
def test_failed_installation_is_the_result_of_either_container(name):
    def result(states):
        pod = ended_pod(states)
        spec = {"initContainers": [{"name": "source"}, {"name": name}]}
        return of_dependencies(Pod({**pod.raw, "spec": spec}), REPOSITORY)

    log = "error: no space left\nNo space left on device"
    full = result({"source": SUCCEEDED, name: ended(1, log)})
    assert isinstance(full, BuildFailure) and full.message == "the build ran out of disk space"
    killed = result({"source": SUCCEEDED, name: ended(1, "error building image: exit status 137")})
    assert isinstance(killed, BuildFailure) and f"({name})" in killed.message
    unknown = result({"source": SUCCEEDED, name: ended(137, "x")})
    assert isinstance(unknown, BuildPodBroken) and unknown.message.startswith(name)
    assert result({"source": SUCCEEDED}).message.startswith(f"container {name} did not run")


def test_dependencies_pod_that_did_not_start_says_so():
    assert of_dependencies(ended_pod({}), REPOSITORY) == BuildPodBroken(
        "container source did not run: no reason given"
    )


OUT_OF_MEMORY = "the build (kaniko) used more memory than its limit"
NO_VERSION = "ERROR: No matching distribution found for nosuch==1"
VERSION_HINT = "Correct the version, which must exist for the crew's Python; if a lock pins it, lock again."
FORGED = json.dumps(FAILED)
"""Of a package that Kaniko installs: it can write the container's message."""
UNREACHABLE = f"ERROR: Could not fetch URL {PUBLIC_INDEX}"


@pytest.mark.parametrize(
    ("code", "log", "result"),
    [
        (
            1,
            f"\x1b[36m{NO_VERSION}\x1b[0m",
            BuildFailure(
                "DependencyResolution", "no version of nosuch==1 can be installed", VERSION_HINT, NO_VERSION
            ),
        ),
        (
            127,
            "boom",
            BuildFailure(
                "BuildFailed", "building the dependency image failed: boom", "See the build log.", "boom"
            ),
        ),
        (
            1,
            FORGED,
            BuildFailure(
                "BuildFailed", f"building the dependency image failed: {FORGED}", "See the build log.", FORGED
            ),
        ),
        (128, "boom", BuildPodBroken("kaniko ended with exit code 128: boom", log="boom")),
        (137, FORGED, BuildPodBroken(f"kaniko ended with exit code 137: {FORGED}", log=FORGED)),
        (
            1,
            "exit status 137",
            BuildFailure("BuildOutOfMemory", OUT_OF_MEMORY, MEMORY_HINT, "exit status 137"),
        ),
        (
            1,
            "No Space left on device",
            BuildFailure(
                "BuildFailed", "the build ran out of disk space", DISK_HINT, "No Space left on device"
            ),
        ),
        (
            1,
            UNREACHABLE,
            BuildPodBroken("the package index could not be reached", "BuildFailed", UNREACHABLE),
        ),
        (
            1,
            "dial tcp: refused",
            BuildPodBroken(
                "building the dependency image failed: dial tcp: refused", "BuildFailed", "dial tcp: refused"
            ),
        ),
        (
            1,
            f"dial tcp: refused\n{NO_VERSION}",
            BuildFailure(
                "DependencyResolution",
                "no version of nosuch==1 can be installed",
                VERSION_HINT,
                f"dial tcp: refused\n{NO_VERSION}",
            ),
        ),
    ],
)
def test_failure_of_kaniko_is_classified_by_code_and_log(code, log, result):
    assert of_dependencies(ended_pod({"source": SUCCEEDED, "kaniko": ended(code, log)}), REPOSITORY) == result


def test_kaniko_of_a_deleted_pod_retries_the_build():
    containers = {"source": SUCCEEDED, "kaniko": ended(2, "Collecting")}
    assert of_dependencies(ended_pod(containers, deleting=True), REPOSITORY) == BuildPodBroken(
        "kaniko ended with exit code 2: Collecting", log="Collecting"
    )


DISK_MESSAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 4Gi."
NODE_MESSAGE = "The node was low on resource: ephemeral-storage."


@pytest.mark.parametrize(
    ("status", "end", "result"),
    [
        (
            {"reason": "DeadlineExceeded"},
            ended(137, "last"),
            BuildFailure("BuildTimeout", "the build exceeded its time limit", TIMEOUT_HINT, "last"),
        ),
        (
            {"reason": "Evicted", "message": DISK_MESSAGE},
            ended(137, "last"),
            BuildFailure(
                "BuildFailed", f"the build exceeded its disk limit: {DISK_MESSAGE}", DISK_HINT, "last"
            ),
        ),
        (
            {"reason": "Evicted", "message": NODE_MESSAGE},
            ended(137, "last"),
            BuildPodBroken(f"the build pod was stopped: {NODE_MESSAGE}", log="last"),
        ),
        (
            {"reason": "Terminated", "message": DISK_MESSAGE},
            ended(137, "last"),
            BuildPodBroken(f"the build pod was stopped: {DISK_MESSAGE}", log="last"),
        ),
        (
            {"reason": "NodeShutdown"},
            ended(137, "last"),
            BuildPodBroken("the build pod was stopped: NodeShutdown", log="last"),
        ),
        (
            {},
            ended(137, "last", reason="OOMKilled"),
            BuildFailure("BuildOutOfMemory", OUT_OF_MEMORY, MEMORY_HINT, "last"),
        ),
    ],
)
def test_stopped_pod_is_classified_before_its_containers(status, end, result):
    pod = ended_pod({"source": SUCCEEDED, "kaniko": end}, **status)
    assert of_dependencies(pod, REPOSITORY) == of_assemble(pod, REPOSITORY) == result


NO_OUTPUT = "container {} was running and produced no output"


@pytest.mark.parametrize(
    ("containers", "log"),
    [
        ({"source": ended(0, "first"), "kaniko": ended(137, LONG_LOG)}, "x" * 3000),
        ({"source": ended(0, "first"), "kaniko": ended(137)}, "first"),
        ({"source": ended(0, BUILT), "kaniko": ended(137)}, NO_OUTPUT.format("kaniko")),
        ({"source": SUCCEEDED, "kaniko": None}, NO_OUTPUT.format("kaniko")),
        ({"source": ended(143), "kaniko": ended(143)}, NO_OUTPUT.format("source")),
        ({"source": SUCCEEDED}, "no container had started"),
    ],
)
def test_log_of_a_stopped_pod_ends_where_the_time_went(containers, log):
    pod = ended_pod(containers, reason="DeadlineExceeded")
    pod.status["containerStatuses"].append({"name": "push", "state": {"waiting": {}}})
    assert of_dependencies(pod, REPOSITORY).log == log
