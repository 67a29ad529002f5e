"""Step `push` of the dependencies pod: upload the image that Kaniko wrote, or the layer of an installation.

The file is untrusted, because its container installed the crew's dependencies as root: digests are computed
here. Called by build.__main__.
"""

import hashlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import IO, cast

import zstandard

from build.errors import REGISTRY_PUSH, BuildRefused, InfrastructureError, require_image_size
from build.image.image_file import MAX_LAYERS, ImageFile, ImageFileInvalid, open_image_file
from build.image.layers import HashingWriter
from build.image.manifest import (
    ImageInvalid,
    ImageManifest,
    PushedLayer,
    image_of_layers,
    layer_digests_in,
    with_layer,
)
from build.logs import BuildLog
from build.registry import shared_base
from build.registry.repository import ImageRepository
from build.settings import BuildSettings

IMAGE, LAYER = Path("/workspace/image.tar"), Path("/workspace/layer.tar")

_CHUNK_BYTES = 1 << 20
_ZSTD_LEVEL, _ZSTD_THREADS = 1, 2
_GZIP_MAGIC, _ZSTD_MAGIC = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def push_dependencies(settings: BuildSettings, log: BuildLog, path: Path | None = None) -> str:
    """Push the image at `path` as `deps-<key>`, return the digest. Raises as ImageRepository does."""
    if not settings.dependencies_key:
        raise InfrastructureError("CREWYARD_BUILD.dependencies.key is missing")
    repository = ImageRepository(
        settings.repository, settings.registry_insecure, settings.registry_credential
    )
    tag = f"deps-{settings.dependencies_key}"
    started = time.monotonic()
    path = path or (LAYER if settings.base_digest else IMAGE)
    try:
        file, size = open_image_file(path)
        with file:
            if settings.base_digest:
                image = _push_installed(settings, repository, file, path.parent, log)
            else:
                image = _push_built(settings, repository, ImageFile(file, size), log)
        digest = repository.push_image(image, tag)
        if shared_base.is_shared(settings, settings.dependencies_key):
            shared_base.offer(settings, repository, settings.dependencies_key, digest, log)
    except (ImageFileInvalid, ImageInvalid) as error:
        raise InfrastructureError(f"{path} cannot be used: {error}") from None
    log.line(f"pushed {settings.repository}:{tag} ({digest}) after {time.monotonic() - started:.2f} s")
    return digest


def _push_built(
    settings: BuildSettings, repository: ImageRepository, image: ImageFile, log: BuildLog
) -> ImageManifest:
    """Push the layers of the image that Kaniko wrote; return it."""
    config, names = image.index()
    _check_count(len(names))
    require_image_size(sum(map(image.size, names)), settings.image_bytes)
    mount = _mount_repository(settings)
    return image_of_layers(config, [_push_layer(repository, image, name, mount, log) for name in names])


def _push_installed(
    settings: BuildSettings, repository: ImageRepository, tar: IO[bytes], workspace: Path, log: BuildLog
) -> ImageManifest:
    """Push the layer of an installation; return the image that it makes of its base image."""
    base = repository.image(settings.base_digest)
    if base is None:
        raise InfrastructureError(f"{settings.repository}@{settings.base_digest} is not in the registry")
    _check_count(len(layer_digests_in(base.manifest)) + 1)
    # Not in memory, and removed with the pod.
    with tempfile.TemporaryFile(dir=workspace) as content:
        layer, diff_id = compress_layer(tar, content)
        require_image_size(base.size + layer.size, settings.image_bytes)
        content.seek(0)
        repository.push_blob(content, layer.size, layer.digest)
    log.line(f"layer {layer.digest[7:19]}: {layer.size} bytes")
    return with_layer(base, layer, diff_id, "crewyard: dependencies")


def compress_layer(tar: IO[bytes], target: IO[bytes]) -> tuple[PushedLayer, str]:
    """Write the tar compressed to `target`; return the layer, and the digest of the tar."""
    compressed = HashingWriter(target)
    compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL, threads=_ZSTD_THREADS)
    with compressor.stream_writer(cast("IO[bytes]", compressed), closefd=False) as packed:
        content = HashingWriter(packed)
        shutil.copyfileobj(tar, content, _CHUNK_BYTES)
    return PushedLayer(compressed.digest, compressed.size, zstd=True), content.digest


def _check_count(layers: int) -> None:
    if layers > MAX_LAYERS:
        raise BuildRefused(
            REGISTRY_PUSH,
            f"the image has {layers} layers",
            f"Images can have at most {MAX_LAYERS} layers.",
        )


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
