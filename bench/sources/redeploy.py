"""B1 to B5: POST → active of an example, against the plain Kaniko executor with a warm cache."""

import contextlib
import os
import secrets
import tempfile
import time
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.lib.pod_cgroup import process_mib
from bench.sources.kaniko import KanikoPeer, installation_settings
from bench.sources.peak_memory import watch_peak
from crds import names
from crds.kinds import POD
from tests.e2e.upload_project import UploadProject, archive, tree, upload
from tests.testbed.git_server import GitServer

EXAMPLES = Path(__file__).parents[2] / "examples"
Files = dict[str, bytes]
_WAITING_BUILDERS = f"{names.LABEL_WARM_BUILDER},!{names.LABEL_DEPLOYMENT}"
_PLAIN: Files = {"main.py": b"def kickoff(inputs):\n    return inputs\n"}
Measure = Callable[[MeasuredInstallation], Awaitable[list[Finding]]]


def example_tree(name: str) -> Files:
    """Return an example with its dependencies in a requirements.txt, which the peer's Dockerfile reads."""
    files = tree(EXAMPLES / name)
    if "requirements.txt" not in files and "pyproject.toml" in files:
        declared = tomllib.loads(files["pyproject.toml"].decode())["project"]["dependencies"]
        files["requirements.txt"] = "".join(f"{line}\n" for line in declared).encode()
    return files


def code_changed(files: Files, number: int) -> Files:
    """Return the tree with a change that affects no dependency. Pure."""
    return {**files, "release.txt": f"release {number} {secrets.token_hex(4)}\n".encode()}


def dependency_added(files: Files, number: int) -> Files:
    """Return the tree with one more small package, of another version each time. Pure."""
    versions = ("3.4", "3.6", "3.7", "3.8", "3.9", "3.10")
    lines = files["requirements.txt"].decode().rstrip("\n")
    return {**files, "requirements.txt": f"{lines}\nidna=={versions[number % len(versions)]}\n".encode()}


async def _redeploy_seconds(upload_project: UploadProject, files: Files) -> float:
    """Return the seconds from POST /v1/deployments to active, without the upload before it."""
    context = await upload(upload_project.testbed, upload_project.project, archive(files))
    body = {"project": upload_project.project, "build_context_url": context, "message": "Measure"}
    started = time.monotonic()
    created = await upload_project.testbed.post("/v1/deployments", body)
    deployment = await upload_project.wait_finished(created["id"], 900, 0.02)
    assert deployment["status"] == "active", deployment
    return time.monotonic() - started


@contextlib.asynccontextmanager
async def _kaniko_peer(installation: MeasuredInstallation) -> AsyncIterator[KanikoPeer]:
    """Run the peer with a git server for its builds."""
    settings = await installation_settings(installation.testbed)
    with (
        tempfile.TemporaryDirectory() as root,
        GitServer(Path(root), os.environ["CREWYARD_HOST_ADDRESS"]) as server,
    ):
        peer = KanikoPeer(installation.testbed, settings, server)
        await peer.open()
        try:
            yield peer
        finally:
            await peer.close()


async def _measure_pairs(
    installation: MeasuredInstallation, example: str, change: Callable[[Files, int], Files], count: int
) -> tuple[list[tuple[float, float]], UploadProject, float]:
    """Return pairs (peer, ours) of one kind of change, our project, and the seconds of its first build."""
    files = example_tree(example)
    upload_project = await installation.project()
    async with _kaniko_peer(installation) as peer:
        first = await _redeploy_seconds(upload_project, files)
        await peer.build(files)
        pairs = []
        for number in range(count):
            changed = change(files, number)
            pairs.append((await peer.build(changed), await _redeploy_seconds(upload_project, changed)))
    return pairs, upload_project, first


def code_only(example: str, count: int) -> Measure:
    """Return the measurement of B1 and B3 on an example."""

    async def measure(installation: MeasuredInstallation) -> list[Finding]:
        pairs, upload_project, first = await _measure_pairs(installation, example, code_changed, count)
        files = example_tree(example)
        identical = [await _redeploy_seconds(upload_project, files) for _ in range(3)]
        # Packed in another order it is a different upload of the same tree, and built again.
        orders = (files, dict(reversed(files.items())))
        digests = {
            await upload_project.image(await upload_project.deploy_and_wait(ordered)) for ordered in orders
        }
        return [
            Finding("B1", f"{example}: first build, POST → active", values=[first]),
            Finding(
                "B1",
                f"{example}: code-only redeploy, POST → active",
                pairs=pairs,
                peer="raw Kaniko, warm cache",
                fact=f"{_median_speedup(pairs):.1f} times as fast at the median",
            ),
            Finding("B1", f"{example}: identical content, POST → active", values=identical),
            Finding("B3", f"{example}: the same source twice", "", fact=f"{len(digests)} digest(s)"),
        ]

    return measure


def with_waiting_pod(example: str, count: int) -> Measure:
    """Return the measurement of B6 on an example."""

    async def measure(installation: MeasuredInstallation) -> list[Finding]:
        files = example_tree(example)
        upload_project = await installation.project()
        await _redeploy_seconds(upload_project, files)
        path = f"/v1/projects/{upload_project.project}"
        await installation.testbed.call("PATCH", path, {"build": {"warm": 1}})
        pairs, mib = [], []
        async with _kaniko_peer(installation) as peer:
            await peer.build(files)
            for number in range(count):
                changed = code_changed(files, number)
                peer_seconds = await peer.build(changed)
                pod = await installation.waiting_pod(upload_project.project, _WAITING_BUILDERS)
                mib.append(process_mib(pod.uid))
                pairs.append((peer_seconds, await _redeploy_seconds(upload_project, changed)))
        what = f"{example}: code-only redeploy, with a pod that waits for a build, POST → active"
        return [
            Finding("B6", what, pairs=pairs, peer="raw Kaniko, warm cache"),
            Finding("B6", "memory of the processes of a pod that waits for a build", "MiB", values=mib),
        ]

    return measure


def dependencies(example: str, count: int) -> Measure:
    """Return the measurement of B2 on an example."""

    async def measure(installation: MeasuredInstallation) -> list[Finding]:
        pairs, _, first = await _measure_pairs(installation, example, dependency_added, count)
        return [
            Finding("B2", f"{example}: first build, POST → active", values=[first]),
            Finding(
                "B2",
                f"{example}: dependencies changed, POST → active",
                pairs=pairs,
                peer="raw Kaniko, warm cache",
            ),
        ]

    return measure


async def first_builds(
    installation: MeasuredInstallation, example: str = "langgraph", count: int = 5
) -> list[Finding]:
    """Measure first builds of the example, each in a new project and with other dependencies."""
    pairs = []
    async with _kaniko_peer(installation) as peer:
        for number in range(count):
            files = dependency_added(example_tree(example), number)
            upload_project = await installation.project()
            pairs.append((await peer.build(files), await _redeploy_seconds(upload_project, files)))
    what = f"{example}: first build in a new project, POST → active"
    return [Finding("B4", what, pairs=pairs, peer="raw Kaniko with pip")]


async def without_dependencies(installation: MeasuredInstallation, count: int = 11) -> list[Finding]:
    """Measure B5: first builds of plain Python in new projects, once the base image is made."""
    values = []
    for number in range(count):
        upload_project = await installation.project()
        values.append(await _redeploy_seconds(upload_project, code_changed(_PLAIN, number)))
    what = "plain Python without dependencies: first build in a new project, POST → active"
    return [Finding("B5", what, values=values[1:])]


def _median_speedup(pairs: list[tuple[float, float]]) -> float:
    ratios = sorted(peer / ours for peer, ours in pairs[1:])
    return ratios[len(ratios) // 2]


async def cold_start(
    installation: MeasuredInstallation, example: str = "crewai", module: str = "crewai"
) -> list[Finding]:
    """Measure the first build of the CrewAI example, the pull of its image on a fresh node, and its import.

    Also the peer's first build, and the memory of the installation on both sides.
    """
    upload_project = await installation.project()
    files = code_changed(example_tree(example), 0)
    async with _kaniko_peer(installation) as peer:
        async with peer.watch_peak() as peer_peak:
            peer_seconds = await peer.build(files)
        async with watch_peak(
            installation.kube, f"crewyard.dev/project={upload_project.project}"
        ) as our_peak:
            our_seconds = await _redeploy_seconds(upload_project, files)
    active = (await installation.testbed.get(f"/v1/projects/{upload_project.project}"))[
        "active_deployment_id"
    ]
    pod_spec = await pods.template(installation)
    image = await upload_project.image(active)
    spec = {"containers": [{**pod_spec["containers"][0], "image": image}]}
    script = f"import time; started = time.monotonic(); import {module}; print(time.monotonic() - started)"
    imports = []
    pull_duration = ""
    for _ in range(5):
        body = pods.pod({**pod_spec, **spec}, script)
        name = body["metadata"]["name"]
        await installation.kube.create(POD, body)
        await pods.wait_finished(installation, name, 300)
        imports.append(float((await pods.log(installation, name)).split()[-1]))
        pull_duration = pull_duration or await _pull_duration(installation, name)
        await installation.kube.delete(POD, name)
    return [
        Finding(
            "B4",
            f"{example}: first build, POST → active",
            pairs=[(peer_seconds, our_seconds)],
            peer="raw Kaniko, no cache",
        ),
        Finding(
            "B4",
            f"{example}: memory of the installation",
            "",
            fact=f"ours {our_peak.describe()}; peer {peer_peak.describe()}",
        ),
        Finding("B4", f"{example}: pull", "", fact=pull_duration),
        Finding("B4", f"{example}: import {module}, the first of them cold", values=imports),
    ]


async def _pull_duration(installation: MeasuredInstallation, name: str) -> str:
    """Return the pull duration in the kubelet's event."""
    field = f"involvedObject.name={name},reason=Pulled"
    return (
        await installation.testbed.kubectl(
            "get", "events", "--field-selector", field, "-o", "jsonpath={.items[0].message}"
        )
    ).partition("in ")[2]
