"""Container images as values, and their push to the local registry.

Used for the three images that the dev cluster builds itself (pause, Kaniko, base). The same content gives the
same digest: entries are sorted, timestamps are zero.
"""

import gzip
import hashlib
import http.client
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dev.errors import DevClusterError
from dev.registry.client import RegistryClient
from dev.registry.server import URL
from dev.settings import REGISTRY

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class OciLayer:
    """One layer: the compressed bytes in a file, and the hash of the uncompressed tar."""

    path: Path
    digest: str
    size: int
    diff_id: str


@dataclass(frozen=True)
class OciImage:
    """An image to push: its layers, lowest first, and its `config` object."""

    layers: Sequence[OciLayer]
    config: Mapping[str, object] = field(default_factory=dict)


def layer(tar: Path, target: Path) -> OciLayer:
    """Compress a tar file into `target`."""
    plain, packed = hashlib.sha256(), hashlib.sha256()
    size = 0
    with (
        tar.open("rb") as source,
        target.open("wb") as output,
        gzip.GzipFile(filename="", fileobj=output, mode="wb", compresslevel=1, mtime=0) as archive,
    ):
        while block := source.read(1 << 20):
            plain.update(block)
            archive.write(block)
    with target.open("rb") as source:
        while block := source.read(1 << 20):
            packed.update(block)
            size += len(block)
    return OciLayer(target, f"sha256:{packed.hexdigest()}", size, f"sha256:{plain.hexdigest()}")


def write_tar(target: Path, files: Mapping[str, Path | str]) -> None:
    """Write a tar of regular files (a Path, copied with its mode) and symlinks (a str), owned by root."""
    directories = sorted({str(parent) for name in files for parent in Path(name).parents} - {"."})
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in directories:
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for name, source in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            if isinstance(source, str):
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, source, 0o777
                archive.addfile(entry)
            else:
                content = source.read_bytes()
                entry.size, entry.mode = len(content), 0o755 if source.stat().st_mode & 0o111 else 0o644
                archive.addfile(entry, io.BytesIO(content))


def documents(image: OciImage, architecture: str) -> tuple[bytes, bytes]:
    """Return the image's configuration and manifest."""
    config = {
        "architecture": _ARCHITECTURES.get(architecture, architecture),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": dict(image.config),
        "rootfs": {"type": "layers", "diff_ids": [image_layer.diff_id for image_layer in image.layers]},
        "history": [{"created": "1970-01-01T00:00:00Z", "created_by": "crewyard"} for _ in image.layers],
    }
    blob = json.dumps(config, sort_keys=True).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": {"mediaType": _CONFIG, "digest": _sha256(blob), "size": len(blob)},
        "layers": [
            {"mediaType": _LAYER, "digest": image_layer.digest, "size": image_layer.size}
            for image_layer in image.layers
        ],
    }
    return blob, json.dumps(manifest, sort_keys=True).encode()


def _sha256(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _call(
    client: RegistryClient,
    method: str,
    target: str,
    body: object = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    try:
        return client.call(method, target, body, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DevClusterError(
            f"The registry at {URL} does not respond: {error}. Run `make up` to start it."
        ) from error


def exists(repository: str, reference: str) -> bool:
    """Return whether the registry has this manifest, by tag or digest."""
    accept = {"Accept": f"{_MANIFEST}, application/vnd.docker.distribution.manifest.v2+json"}
    return (
        _call(RegistryClient(URL), "HEAD", f"/v2/{repository}/manifests/{reference}", headers=accept)[0]
        == 200
    )


def push(repository: str, tag: str, image: OciImage, architecture: str, basic: str = "") -> str:
    """Push the image and return its reference by digest. Raises DevClusterError if the registry refuses.

    `basic` is the value of a Basic `Authorization` header.
    """
    client = RegistryClient(URL, basic)
    config, manifest = documents(image, architecture)
    for image_layer in image.layers:
        with image_layer.path.open("rb") as file:
            _push_blob(client, repository, image_layer.digest, image_layer.size, file)
    _push_blob(client, repository, _sha256(config), len(config), config)
    headers = {"Content-Type": _MANIFEST}
    status, _ = _call(client, "PUT", f"/v2/{repository}/manifests/{tag}", manifest, headers)
    if status != 201:
        raise DevClusterError(
            f"The registry returned {status} for the manifest of {repository}:{tag}. See registry.log."
        )
    return f"{REGISTRY}/{repository}@{_sha256(manifest)}"


def _push_blob(client: RegistryClient, repository: str, digest: str, size: int, body: object) -> None:
    if _call(client, "HEAD", f"/v2/{repository}/blobs/{digest}")[0] == 200:
        return
    status, location = _call(client, "POST", f"/v2/{repository}/blobs/uploads/", b"")
    if status == 202:
        target = f"{location}{'&' if '?' in location else '?'}digest={digest}"
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        status, _ = _call(client, "PUT", target, body, headers)
    if status != 201:
        raise DevClusterError(f"The registry returned {status} for a blob of {repository}. See registry.log.")
