"""Step `push` of the dependencies pod: uploads the image that Kaniko left. Called by build.__main__.

The file is the work of a container in which the crew's dependencies were
installed as root, so nothing in it is believed: digests are computed here.
"""

import hashlib
from pathlib import Path
from typing import IO

from build.errors import REGISTRY_PUSH, Infrastructure, Refused
from build.image.image_file import LAYERS, ImageFile, ImageFileInvalid, open_image_file
from build.image.manifest import docker_image
from build.logs import Log
from build.registry.repository import Repository
from build.settings import Settings

IMAGE = Path("/workspace/image.tar")

_CHUNK = 1 << 20


def push_dependencies(settings: Settings, log: Log, path: Path = IMAGE) -> str:
    """Pushes the image at `path` as `deps-<key>`; its digest. Raises Refused or Infrastructure."""
    if not settings.dependencies_key:
        raise Infrastructure("CREWYARD_BUILD.dependencies.key is missing")
    repository = Repository(settings.repository, settings.registry_insecure, settings.registry_credential)
    tag = f"deps-{settings.dependencies_key}"
    try:
        file, size = open_image_file(path)
        with file:
            image = ImageFile(file, size)
            config, names = image.index()
            if len(names) > LAYERS:
                raise Refused(
                    REGISTRY_PUSH, f"the image has {len(names)} layers", f"At most {LAYERS} can be run."
                )
            layers = [_push_layer(repository, image, name, _mount(settings), log) for name in names]
            digest = repository.push_image(docker_image(config, layers), tag)
    except ImageFileInvalid as error:
        raise Infrastructure(f"{path} is not an image as Kaniko writes it: {error}") from None
    log.line(f"pushed {settings.repository}:{tag} ({digest})")
    return digest


def _push_layer(repository: Repository, image: ImageFile, name: str, mount: str, log: Log) -> tuple[str, int]:
    content = image.member(name)
    digest, size = _measured(content, name)
    content.seek(0)
    sent = repository.push_blob(content, size, digest, mount_from=mount)
    log.line(f"layer {digest[7:19]}: {size} bytes{'' if sent else ', already there'}")
    return digest, size


def _measured(content: IO[bytes], name: str) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while chunk := content.read(_CHUNK):
        if not size and not chunk.startswith(b"\x1f\x8b"):
            raise ImageFileInvalid(f"the layer {name[:200]!r} is not compressed with gzip")
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
