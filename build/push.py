"""Step `push` of the dependencies pod: uploads the image that Kaniko left. Called by build.__main__.

The file is the work of a container in which the crew's dependencies were
installed as root, so nothing in it is believed: digests are computed here.
"""

import hashlib
import json
import os
import stat
import tarfile
from pathlib import Path
from typing import IO

from build.errors import REGISTRY_PUSH, Infrastructure, Refused
from build.image import docker_image
from build.logs import Log
from build.registry import Repository
from build.settings import Settings

IMAGE = Path("/workspace/image.tar")

_JSON_BYTES = 4 << 20
_LAYERS = 127
_CHUNK = 1 << 20


def push_dependencies(settings: Settings, log: Log, path: Path = IMAGE) -> str:
    """Pushes the image at `path` as `deps-<key>`; its digest. Raises Refused or Infrastructure."""
    if not settings.dependencies_key:
        raise Infrastructure("CREWYARD_BUILD.dependencies.key is missing")
    repository = Repository(settings.repository, settings.registry_insecure, settings.registry_auth)
    tag = f"deps-{settings.dependencies_key}"
    with _opened(path) as file, tarfile.open(fileobj=file, mode="r:") as archive:
        try:
            config, names = _index(archive)
            layers = []
            for name in names:
                content = _member(archive, name)
                digest, size = _measured(content, name)
                content.seek(0)
                sent = repository.push_blob(content, size, digest, mount_from=_mount(settings))
                log.line(f"layer {digest[7:19]}: {size} bytes{'' if sent else ', already there'}")
                layers.append((digest, size))
        except (KeyError, ValueError, TypeError, AttributeError, tarfile.TarError) as error:
            raise Infrastructure(f"{path} is not an image as Kaniko writes it: {error}") from None
        digest = repository.push_image(docker_image(config, layers), tag)
    log.line(f"pushed {settings.repository}:{tag} ({digest})")
    return digest


def _opened(path: Path) -> IO[bytes]:
    # A link in its place would make this container read its own files.
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Infrastructure(f"{path} cannot be read: {error}") from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Infrastructure(f"{path} is no regular file")
    return os.fdopen(number, "rb")


def _index(archive: tarfile.TarFile) -> tuple[bytes, list[str]]:
    """The configuration and the names of the layers. Raises KeyError, ValueError, TypeError."""
    images = json.loads(_member(archive, "manifest.json").read(_JSON_BYTES))
    config = _member(archive, str(images[0]["Config"])).read(_JSON_BYTES)
    names = [str(name) for name in images[0]["Layers"]]
    if len(images) != 1 or len(json.loads(config)["rootfs"]["diff_ids"]) != len(names):
        raise ValueError("it disagrees with itself about images or layers")
    if len(names) > _LAYERS:
        raise Refused(REGISTRY_PUSH, f"the image has {len(names)} layers", f"At most {_LAYERS} can be run.")
    return config, names


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    content = archive.extractfile(name)
    if content is None:
        raise ValueError(f"{name} is no file")
    return content


def _measured(content: IO[bytes], name: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while chunk := content.read(_CHUNK):
        if not size and not chunk.startswith(b"\x1f\x8b"):
            raise ValueError(f"the layer {name} is not compressed with gzip")
        digest.update(chunk)
        size += len(chunk)
    return f"sha256:{digest.hexdigest()}", size


def _mount(settings: Settings) -> str:
    """A repository of the same registry that may hold the base's layers already, or an empty text."""
    host = settings.registry_prefix.partition("/")[0]
    for reference in settings.base_images.values():
        if reference.startswith(f"{host}/"):
            path = reference[len(host) + 1 :].partition("@")[0]
            head, slash, last = path.rpartition("/")
            return f"{head}{slash}{last.partition(':')[0]}"
    return ""
