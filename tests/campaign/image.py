"""The image of the campaign's crew: the base image, the runner of a tree, and `crew/main.py`.

Made without a build, so that a test of a patched runner takes a second. Called by `tests.campaign.testbed`.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path

from build.image.layers import ImageLayer, LayerFile, make_layer
from build.image.manifest import append_layers
from build.image.runner_files import runner_files
from build.registry.credential import RegistryCredential
from build.registry.repository import ImageRepository
from dev.registry import access
from dev.settings import from_environment

CREW = Path(__file__).parent / "crew"
REPOSITORY = "campaign/crew"
_THERE = ("app", "app/artifacts", "opt", "opt/crewyard")
_USER = 65532
_ROOT_OWNED = ("app", "opt", "opt/crewyard")
_USER_OWNED = ("app/artifacts", "home/crew")


def ensure(tree: Path, base: str, address: str) -> str:
    """The image's reference by digest, pushed where it was not there. Raises build.errors' of the registry.

    `base` is the base image as the cluster names it, `address` the registry's as this machine reaches it.
    """
    registry, _, name = base.partition("/")
    below, _, digest = name.partition("@")
    found = ImageRepository(f"{address}/{below}", True).image(digest)
    assert found is not None, f"there is no base image {base}"
    runner = make_layer(runner_files(tree / "runner"), _THERE)
    code = make_layer([LayerFile("app/main.py", (CREW / "main.py").read_bytes())], _THERE)
    layers = [(_directories(), "directories"), (runner, "runner"), (code, "crew")]
    image = append_layers(found, layers, {})
    auth = access.docker_config(from_environment(os.environ), REPOSITORY, address)
    repository = ImageRepository(f"{address}/{REPOSITORY}", True, RegistryCredential(auth))
    tag = image.digest.removeprefix("sha256:")[:20]
    if repository.digest(tag) is None:
        for known in _digests(found.manifest):
            # Taken over within the registry: nothing is sent.
            repository.push_blob(io.BytesIO(b""), 0, known, mount_from=below)
        for layer, _ in layers:
            repository.push_blob(layer.content, layer.size, layer.digest)
        repository.push_image(image, tag)
    return f"{registry}/{REPOSITORY}@{image.digest}"


def _digests(manifest: bytes) -> list[str]:
    return [str(layer["digest"]) for layer in json.loads(manifest)["layers"]]


def _directories() -> ImageLayer:
    """What the dependency image of a build has: the directories of crew and runner, with their owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path in sorted((*_ROOT_OWNED, *_USER_OWNED)):
            header = tarfile.TarInfo(path)
            header.type, header.mode = tarfile.DIRTYPE, 0o755
            header.uid = header.gid = _USER if path in _USER_OWNED else 0
            archive.addfile(header)
    packed = gzip.compress(plain.getvalue(), mtime=0)
    digests = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in (packed, plain.getvalue())]
    return ImageLayer(io.BytesIO(packed), len(packed), digests[0], digests[1])
