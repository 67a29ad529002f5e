"""Step `push` of the dependencies pod: upload the image that Kaniko wrote. Called by build.__main__.

The file is untrusted, because its container installed the crew's dependencies as root: digests are computed
here.
"""

import hashlib
import time
from pathlib import Path
from typing import IO

from build.errors import REGISTRY_PUSH, BuildRefused, InfrastructureError, require_image_size
from build.image.image_file import MAX_LAYERS, ImageFile, ImageFileInvalid, open_image_file
from build.image.manifest import PushedLayer, image_of_layers
from build.logs import BuildLog
from build.registry import shared_base
from build.registry.repository import ImageRepository
from build.settings import BuildSettings

IMAGE = Path("/workspace/image.tar")

_CHUNK_BYTES = 1 << 20
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def push_dependencies(settings: BuildSettings, log: BuildLog, path: Path = IMAGE) -> str:
    """Push the image at `path` as `deps-<key>`, return the digest. Raises as ImageRepository does."""
    if not settings.dependencies_key:
        raise InfrastructureError("CREWYARD_BUILD.dependencies.key is missing")
    repository = ImageRepository(
        settings.repository, settings.registry_insecure, settings.registry_credential
    )
    tag = f"deps-{settings.dependencies_key}"
    started = time.monotonic()
    try:
        file, size = open_image_file(path)
        with file:
            image = ImageFile(file, size)
            config, names = image.index()
            if len(names) > MAX_LAYERS:
                raise BuildRefused(
                    REGISTRY_PUSH,
                    f"the image has {len(names)} layers",
                    f"Images can have at most {MAX_LAYERS} layers.",
                )
            require_image_size(sum(map(image.size, names)), settings.image_bytes)
            layers = [
                _push_layer(repository, image, name, _mount_repository(settings), log) for name in names
            ]
            digest = repository.push_image(image_of_layers(config, layers), tag)
            if shared_base.is_shared(settings, settings.dependencies_key):
                shared_base.offer(settings, repository, settings.dependencies_key, digest, log)
    except ImageFileInvalid as error:
        raise InfrastructureError(f"{path} is not an image in Kaniko's format: {error}") from None
    log.line(f"pushed {settings.repository}:{tag} ({digest}) after {time.monotonic() - started:.2f} s")
    return digest


def _push_layer(
    repository: ImageRepository, image: ImageFile, name: str, mount: str, log: BuildLog
) -> PushedLayer:
    content = image.member(name)
    layer = _read_layer(content, name)
    digest, size = layer.digest, layer.size
    content.seek(0)
    uploaded = repository.push_blob(content, size, digest, mount_from=mount)
    log.line(f"layer {digest[7:19]}: {size} bytes{'' if uploaded else ', already in the registry'}")
    return layer


def _read_layer(content: IO[bytes], name: str) -> PushedLayer:
    digest, size, zstd = hashlib.sha256(), 0, False
    while chunk := content.read(_CHUNK_BYTES):
        if not size:
            zstd = chunk.startswith(_ZSTD_MAGIC)
            if not zstd and not chunk.startswith(_GZIP_MAGIC):
                raise ImageFileInvalid(f"layer {name[:200]!r} is compressed with neither gzip nor zstd")
        digest.update(chunk)
        size += len(chunk)
    return PushedLayer(f"sha256:{digest.hexdigest()}", size, zstd)


def _mount_repository(settings: BuildSettings) -> str:
    """Return a repository of the same registry that may have the base layers, or an empty string."""
    host = settings.registry_prefix.partition("/")[0]
    for reference in settings.base_images.values():
        if reference.startswith(f"{host}/"):
            path = reference[len(host) + 1 :].partition("@")[0]
            head, slash, last = path.rpartition("/")
            return f"{head}{slash}{last.partition(':')[0]}"
    return ""
