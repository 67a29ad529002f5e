"""All data that an installation on the dev cluster stores, as pairs of a place and its bytes.

Called by the search for canaries. Secrets themselves are left out; so are the environment and the memory of
processes, which hold what they were given.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

from tests.e2e.testbed import E2eTestbed

BASE = "library/python"
SYSTEM = "crewyard-system"
_VOLUME = "data/volumes/crewyard-data"
_REGISTRY = "data/registry/docker/registry/v2"
Found = tuple[str, bytes]


def files(state: Path, below: str, since: float = 0.0) -> Iterator[Found]:
    """All files below a directory of the state that were written to after `since`, in epoch seconds."""
    for path in sorted((state / below).rglob("*")):
        try:
            if path.is_file() and not path.is_symlink() and path.stat().st_mtime >= since:
                yield str(path.relative_to(state)), path.read_bytes()
        except OSError:
            continue  # gone since it was listed


def logs(state: Path, since: float) -> Iterator[Found]:
    """The logs of all pods and of the node's own processes."""
    return files(state, "logs", since)


def store(state: Path, since: float) -> Iterator[Found]:
    """The api's volume: index, event logs, build logs, artifacts, uploads."""
    return files(state, _VOLUME, since)


def _blobs(state: Path, repository: str) -> set[str]:
    links = (state / _REGISTRY / "repositories" / repository / "_layers/sha256").glob("*")
    return {link.name for link in links}


def images(state: Path, projects: Iterable[str]) -> Iterator[Found]:
    """Manifests, configurations and layers of some projects' repositories, without the base image's."""
    base = _blobs(state, BASE)
    for project in projects:
        repository = f"crews/{project}"
        directory = state / _REGISTRY / "repositories" / repository
        manifests = {one.name for one in (directory / "_manifests/revisions/sha256").glob("*")}
        for digest in sorted(_blobs(state, repository) - base | manifests):
            path = state / _REGISTRY / "blobs/sha256" / digest[:2] / digest / "data"
            if path.is_file():
                yield f"image {repository} {digest[:12]}", path.read_bytes()
        yield from files(state, f"{_REGISTRY}/repositories/{repository}/_uploads")


async def metrics(testbed: E2eTestbed) -> AsyncIterator[Found]:
    """Yield the metrics of both processes, which every pod can read."""
    for name, port in (("crewyard-api", 8080), ("crewyard-controller", 9090)):
        path = f"/api/v1/namespaces/{SYSTEM}/services/{name}:{port}/proxy/metrics"
        yield f"metrics of {name}", (await testbed.kubectl("get", "--raw", path)).encode()


async def objects(testbed: E2eTestbed) -> AsyncIterator[Found]:
    """What kubectl shows of the crews' namespace, Events and managed fields with it, but for Secrets."""
    kinds = "cproj,cdep,crun,pods,events,configmaps"
    shown = await testbed.kubectl("get", kinds, "-o", "json", "--show-managed-fields")
    for item in json.loads(shown)["items"]:
        place = f"kubectl {item['kind']} {item['metadata']['name']}"
        yield place, json.dumps(item, ensure_ascii=False).encode()


async def answers(testbed: E2eTestbed, projects: Iterable[str]) -> AsyncIterator[Found]:
    """What the API tells an administrator of some projects."""
    paths = ["/v1/api-keys", "/openapi.json"]
    for project in projects:
        paths += [f"/v1/projects/{project}", f"/v1/projects/{project}/env", f"/v1/projects/{project}/usage"]
        for deployment in await testbed.get("/v1/deployments", project=project):
            paths += [f"/v1/deployments/{deployment['id']}{more}" for more in ("", "/logs")]
        for run in await testbed.get("/v1/runs", project=project):
            whole = f"/v1/runs/{run['id']}"
            paths += [whole, f"{whole}/logs", f"{whole}/events", f"{whole}/artifacts"]
    json_please = {"Accept": "application/json, text/plain"}
    found = await asyncio.gather(*(testbed.call("GET", path, headers=json_please) for path in paths))
    for path, answer in zip(paths, found, strict=True):
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        yield f"GET {path}", body + str(dict(answer.headers)).encode()
