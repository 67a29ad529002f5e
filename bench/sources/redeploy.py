"""B1, B2, B3: POST → active of an example, against the raw Kaniko executor with a warm cache."""

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
from bench.lib.installation import Ground
from bench.sources.kaniko import Kaniko, installed
from bench.sources.peak_memory import peak
from crds.kinds import POD
from tests.e2e.workshop import Workshop, archive, tree, upload
from tests.testbed.git_server import GitServer

EXAMPLES = Path(__file__).parents[2] / "examples"
Files = dict[str, bytes]
Measure = Callable[[Ground], Awaitable[list[Finding]]]


def example_tree(name: str) -> Files:
    """An example with its dependencies in a requirements.txt, which the peer's Dockerfile reads too."""
    files = tree(EXAMPLES / name)
    if "requirements.txt" not in files and "pyproject.toml" in files:
        declared = tomllib.loads(files["pyproject.toml"].decode())["project"]["dependencies"]
        files["requirements.txt"] = "".join(f"{line}\n" for line in declared).encode()
    return files


def code_changed(files: Files, number: int) -> Files:
    """The tree with a change that no dependency knows of. Pure."""
    return {**files, "release.txt": f"release {number} {secrets.token_hex(4)}\n".encode()}


def dependency_added(files: Files, number: int) -> Files:
    """The tree with one small package more, another version each time. Pure."""
    versions = ("3.4", "3.6", "3.7", "3.8", "3.9", "3.10")
    lines = files["requirements.txt"].decode().rstrip("\n")
    return {**files, "requirements.txt": f"{lines}\nidna=={versions[number % len(versions)]}\n".encode()}


async def _ours(shop: Workshop, files: Files) -> float:
    """Seconds from POST /v1/deployments to active; the upload before it is not counted."""
    context = await upload(shop.yard, shop.project, archive(files))
    body = {"project": shop.project, "build_context_url": context, "message": "Measure"}
    begun = time.monotonic()
    made = await shop.yard.post("/v1/deployments", body)
    done = await shop.ended(made["id"], 900, 0.02)
    assert done["status"] == "active", done
    return time.monotonic() - begun


@contextlib.asynccontextmanager
async def _beside(ground: Ground) -> AsyncIterator[Kaniko]:
    """The peer, with a git server of its own that its builds read."""
    settings = await installed(ground.yard)
    with (
        tempfile.TemporaryDirectory() as root,
        GitServer(Path(root), os.environ["CREWYARD_HOST_ADDRESS"]) as server,
    ):
        peer = Kaniko(ground.yard, settings, server)
        await peer.open()
        try:
            yield peer
        finally:
            await peer.close()


async def _pairs(
    ground: Ground, example: str, change: Callable[[Files, int], Files], count: int
) -> tuple[list[tuple[float, float]], Workshop, float]:
    """Pairs (peer, ours) of one kind of change, ours' project and the seconds of its first build."""
    files = example_tree(example)
    shop = await ground.project()
    async with _beside(ground) as peer:
        first = await _ours(shop, files)
        await peer.build(files)
        taken = []
        for number in range(count):
            changed = change(files, number)
            taken.append((await peer.build(changed), await _ours(shop, changed)))
    return taken, shop, first


def code_only(example: str, count: int) -> Measure:
    """B1 and B3 on an example."""

    async def measure(ground: Ground) -> list[Finding]:
        taken, shop, first = await _pairs(ground, example, code_changed, count)
        files = example_tree(example)
        identical = [await _ours(shop, files) for _ in range(3)]
        # Packed in another order it is another upload of the same tree, and assembled anew.
        orders = (files, dict(reversed(files.items())))
        digests = {await shop.image(await shop.built(one)) for one in orders}
        return [
            Finding("B1", f"{example}: first build, POST → active", values=[first]),
            Finding(
                "B1",
                f"{example}: code-only redeploy, POST → active",
                pairs=taken,
                peer="raw Kaniko, warm cache",
                fact=f"{_faster(taken):.1f} times as fast at the median",
            ),
            Finding("B1", f"{example}: identical content, POST → active", values=identical),
            Finding("B3", f"{example}: the same source twice", "", fact=f"{len(digests)} digest(s)"),
        ]

    return measure


def dependencies(example: str, count: int) -> Measure:
    """B2 on an example."""

    async def measure(ground: Ground) -> list[Finding]:
        taken, _, first = await _pairs(ground, example, dependency_added, count)
        return [
            Finding("B2", f"{example}: first build, POST → active", values=[first]),
            Finding(
                "B2",
                f"{example}: dependencies changed, POST → active",
                pairs=taken,
                peer="raw Kaniko, warm cache",
            ),
        ]

    return measure


def _faster(taken: list[tuple[float, float]]) -> float:
    ratios = sorted(peer / ours for peer, ours in taken[1:])
    return ratios[len(ratios) // 2]


async def cold_start(ground: Ground, example: str = "crewai", module: str = "crewai") -> list[Finding]:
    """The first build of the CrewAI example, its image's pull on a node that lacks it, and its import.

    The peer's first build, too, and the memory of Kaniko on both sides.
    """
    shop = await ground.project()
    files = code_changed(example_tree(example), 0)
    async with _beside(ground) as peer:
        async with peer.peak() as theirs:
            first = await peer.build(files)
        async with peak(ground.kube, f"crewyard.dev/project={shop.project}") as ours:
            built = await _ours(shop, files)
    active = (await ground.yard.get(f"/v1/projects/{shop.project}"))["active_deployment_id"]
    like = await pods.template(ground)
    image = await shop.image(active)
    spec = {"containers": [{**like["containers"][0], "image": image}]}
    script = f"import time; begun = time.monotonic(); import {module}; print(time.monotonic() - begun)"
    imports = []
    pulled = ""
    for _ in range(5):
        body = pods.pod({**like, **spec}, script)
        name = body["metadata"]["name"]
        await ground.kube.create(POD, body)
        await pods.finished(ground, name, 300)
        imports.append(float((await pods.log(ground, name)).split()[-1]))
        pulled = pulled or await _pulled(ground, name)
        await ground.kube.delete(POD, name)
    return [
        Finding(
            "B4",
            f"{example}: first build, POST → active",
            pairs=[(first, built)],
            peer="raw Kaniko, no cache",
        ),
        Finding("B4", f"{example}: memory of Kaniko", "", fact=f"ours {ours.told()}; peer {theirs.told()}"),
        Finding("B4", f"{example}: pull", "", fact=pulled),
        Finding("B4", f"{example}: import {module}, the first of them cold", values=imports),
    ]


async def _pulled(ground: Ground, name: str) -> str:
    """What the kubelet said of a pod's image."""
    field = f"involvedObject.name={name},reason=Pulled"
    return (
        await ground.yard.kubectl(
            "get", "events", "--field-selector", field, "-o", "jsonpath={.items[0].message}"
        )
    ).partition("in ")[2]
