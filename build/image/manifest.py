"""Image manifests and configurations as values. Pure. Called by build.assemble and build.registry.push.

Docker's and OCI's formats differ in names only; an image keeps the format of its dependency image, because a
manifest must not mix them.
"""

import copy
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from build.image.layers import ImageLayer

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
OCI_ZSTD_LAYER = "application/vnd.oci.image.layer.v1.tar+zstd"
_CONFIG_TYPES = {
    DOCKER_MANIFEST: "application/vnd.docker.container.image.v1+json",
    OCI_MANIFEST: "application/vnd.oci.image.config.v1+json",
}
_LAYER_TYPES = {DOCKER_MANIFEST: DOCKER_LAYER, OCI_MANIFEST: "application/vnd.oci.image.layer.v1.tar+gzip"}
_EPOCH = "1970-01-01T00:00:00Z"
_USER = "65532:65532"


class ImageInvalid(Exception):
    """Layers cannot be appended to this manifest or configuration."""


@dataclass(frozen=True)
class ImageManifest:
    """A manifest and its configuration, each as bytes and digest (`sha256:…`)."""

    media_type: str
    manifest: bytes
    config: bytes

    @property
    def digest(self) -> str:
        """The image's digest."""
        return digest_of(self.manifest)

    @property
    def config_digest(self) -> str:
        """The digest of the configuration blob."""
        return digest_of(self.config)

    @property
    def size(self) -> int:
        """The bytes of the layers, compressed."""
        return sum(int(layer["size"]) for layer in json.loads(self.manifest)["layers"])


def digest_of(data: bytes) -> str:
    """Return the digest of `data`."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def append_layers(
    base: ImageManifest, layers: list[tuple[ImageLayer, str]], labels: dict[str, str]
) -> ImageManifest:
    """Return `base` with `layers` (each with its history comment) on top and `labels` set.

    Equal arguments give equal bytes: the result contains no time and no host data. Raises ImageInvalid.
    """
    manifest, config = _parse(base)
    layer_type = _LAYER_TYPES.get(base.media_type)
    if layer_type is None:
        raise ImageInvalid(f"manifests of type {base.media_type} are not supported")
    for layer, comment in layers:
        _add_to_config(config, layer.diff_id, comment)
        manifest["layers"].append({"mediaType": layer_type, "size": layer.size, "digest": layer.digest})
    config["created"] = _EPOCH
    runtime_config = config.setdefault("config", {})
    runtime_config["User"], runtime_config["WorkingDir"] = _USER, "/app"
    runtime_config["Labels"] = {**(runtime_config.get("Labels") or {}), **labels}
    config_bytes = _encode(config)
    manifest["config"] = {**manifest["config"], "size": len(config_bytes), "digest": digest_of(config_bytes)}
    return ImageManifest(base.media_type, _encode(manifest), config_bytes)


@dataclass(frozen=True)
class PushedLayer:
    """A compressed layer of the registry: by gzip, or by zstd."""

    digest: str
    size: int
    zstd: bool = False


def image_of_layers(config: bytes, layers: list[PushedLayer]) -> ImageManifest:
    """Return an image from its configuration and layers; in OCI's format where a layer has zstd."""
    # Docker's format has no zstd.
    media_type = OCI_MANIFEST if any(layer.zstd for layer in layers) else DOCKER_MANIFEST
    manifest = {
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": {"mediaType": _CONFIG_TYPES[media_type], "size": len(config), "digest": digest_of(config)},
        "layers": [
            {
                "mediaType": OCI_ZSTD_LAYER if layer.zstd else _LAYER_TYPES[media_type],
                "size": layer.size,
                "digest": layer.digest,
            }
            for layer in layers
        ],
    }
    return ImageManifest(media_type, _encode(manifest), config)


def with_layer(base: ImageManifest, layer: PushedLayer, diff_id: str, comment: str) -> ImageManifest:
    """Return `base` with a layer of the registry on top. Raises ImageInvalid."""
    manifest, config = _parse(base)
    _add_to_config(config, diff_id, comment)
    below = [
        PushedLayer(str(one["digest"]), int(one["size"]), one.get("mediaType") == OCI_ZSTD_LAYER)
        for one in manifest["layers"]
    ]
    return image_of_layers(_encode(config), [*below, layer])


def _add_to_config(config: dict[str, Any], diff_id: str, comment: str) -> None:
    config["rootfs"]["diff_ids"].append(diff_id)
    config.setdefault("history", []).append({"created": _EPOCH, "created_by": comment})


def config_digest_in(manifest: bytes) -> str:
    """Return the digest of the configuration in a manifest. Raises ImageInvalid."""
    try:
        return str(json.loads(manifest)["config"]["digest"])
    except (ValueError, KeyError, TypeError):
        raise ImageInvalid(
            "the manifest has no configuration; it may be an index of several platforms"
        ) from None


def layer_digests_in(manifest: bytes) -> list[str]:
    """Return the digests of the layers in a manifest, lowest first. Raises ImageInvalid."""
    try:
        return [str(layer["digest"]) for layer in json.loads(manifest)["layers"]]
    except (ValueError, KeyError, TypeError):
        raise ImageInvalid("the manifest has no layers") from None


def _parse(image: ImageManifest) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        manifest, config = json.loads(image.manifest), json.loads(image.config)
        if len(manifest["layers"]) != len(config["rootfs"]["diff_ids"]):
            raise ImageInvalid("manifest and configuration have different numbers of layers")
    except (ValueError, KeyError, TypeError) as error:
        raise ImageInvalid(f"the dependency image is malformed: {error}") from None
    return copy.deepcopy(manifest), copy.deepcopy(config)


def _encode(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
