"""Manifests and configurations of images as pure values. Called by build.assemble and build.registry.push.

Docker's and OCI's forms differ in names only; an image keeps the form that its
dependency image came in, since a manifest must not mix them.
"""

import copy
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from build.image.layers import Layer

DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
DOCKER_CONFIG = "application/vnd.docker.container.image.v1+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_LAYER_TYPES = {DOCKER_MANIFEST: DOCKER_LAYER, OCI_MANIFEST: "application/vnd.oci.image.layer.v1.tar+gzip"}
_EPOCH = "1970-01-01T00:00:00Z"
_USER = "65532:65532"


class ImageInvalid(Exception):
    """The manifest or configuration is not one that layers can be appended to."""


@dataclass(frozen=True)
class Image:
    """A manifest and its configuration, each as bytes and digest (`sha256:…`)."""

    media_type: str
    manifest: bytes
    config: bytes

    @property
    def digest(self) -> str:
        """The image's own name."""
        return digest_of(self.manifest)

    @property
    def config_digest(self) -> str:
        """The name of the configuration's blob."""
        return digest_of(self.config)


def digest_of(data: bytes) -> str:
    """The name of `data` in a registry."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def appended(base: Image, layers: list[tuple[Layer, str]], labels: dict[str, str]) -> Image:
    """`base` with `layers` on top, each with the words for its history, and `labels` set.

    Equal arguments give equal bytes: nothing of the clock or the machine gets in.
    Raises ImageInvalid.
    """
    manifest, config = _parsed(base)
    layer_type = _LAYER_TYPES.get(base.media_type)
    if layer_type is None:
        raise ImageInvalid(f"manifests of type {base.media_type} are not understood")
    for layer, words in layers:
        config["rootfs"]["diff_ids"].append(layer.diff_id)
        config.setdefault("history", []).append({"created": _EPOCH, "created_by": words})
        manifest["layers"].append({"mediaType": layer_type, "size": layer.size, "digest": layer.digest})
    config["created"] = _EPOCH
    inner = config.setdefault("config", {})
    inner["User"], inner["WorkingDir"] = _USER, "/app"
    inner["Labels"] = {**(inner.get("Labels") or {}), **labels}
    packed = _packed(config)
    manifest["config"] = {**manifest["config"], "size": len(packed), "digest": digest_of(packed)}
    return Image(base.media_type, _packed(manifest), packed)


def docker_image(config: bytes, layers: list[tuple[str, int]]) -> Image:
    """An image in Docker's form from its configuration and the (digest, size) of its compressed layers."""
    manifest = {
        "schemaVersion": 2,
        "mediaType": DOCKER_MANIFEST,
        "config": {"mediaType": DOCKER_CONFIG, "size": len(config), "digest": digest_of(config)},
        "layers": [{"mediaType": DOCKER_LAYER, "size": size, "digest": digest} for digest, size in layers],
    }
    return Image(DOCKER_MANIFEST, _packed(manifest), config)


def config_digest_in(manifest: bytes) -> str:
    """The digest of the configuration that a manifest names. Raises ImageInvalid."""
    try:
        return str(json.loads(manifest)["config"]["digest"])
    except (ValueError, KeyError, TypeError):
        raise ImageInvalid(
            "the manifest names no configuration: is it an index of several platforms?"
        ) from None


def _parsed(image: Image) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        manifest, config = json.loads(image.manifest), json.loads(image.config)
        if len(manifest["layers"]) != len(config["rootfs"]["diff_ids"]):
            raise ImageInvalid("manifest and configuration disagree about the number of layers")
    except (ValueError, KeyError, TypeError) as error:
        raise ImageInvalid(f"the dependency image is malformed: {error}") from None
    return copy.deepcopy(manifest), copy.deepcopy(config)


def _packed(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
