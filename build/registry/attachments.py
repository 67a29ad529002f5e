"""Attestations attached to an image: one manifest of DSSE envelopes in the image's repository.

The image is the manifest's subject, by which registries with the referrers API list it. It has the tag that
cosign reads, and, where the registry has no referrers API, an entry in the index that OCI prescribes instead.
Called by `controller.attestation.child` and build.registry.prune.
"""

import io
import json
from collections.abc import Iterable
from typing import Any

from build.errors import InfrastructureError
from build.image.manifest import OCI_INDEX, OCI_MANIFEST, ImageManifest, digest_of
from build.registry.repository import ImageRepository

ENVELOPE = "application/vnd.dsse.envelope.v1+json"
ARTIFACT_TYPE = "application/vnd.dev.cosign.artifact.att.v1+json"
MAX_ENVELOPES = 32
MAX_ENVELOPE_BYTES = 8 << 20
_EMPTY = b"{}"
_EMPTY_TYPE = "application/vnd.oci.empty.v1+json"


def attestation_tag(image_digest: str) -> str:
    """Return the tag at which cosign looks for attestations of an image."""
    return f"{referrers_tag(image_digest)}.att"


def referrers_tag(image_digest: str) -> str:
    """Return the tag of the index of referrers, for registries without the referrers API."""
    return image_digest.replace(":", "-")


def read_envelopes(repository: ImageRepository, image_digest: str) -> list[bytes]:
    """Return the attached envelopes, which are untrusted. Raises as ImageRepository does."""
    existing = repository.image(attestation_tag(image_digest))
    layers = _layers(existing)[:MAX_ENVELOPES]
    return [repository.blob(str(layer["digest"]), MAX_ENVELOPE_BYTES) for layer in layers]


def attach(repository: ImageRepository, image_digest: str, envelopes: Iterable[tuple[str, bytes]]) -> None:
    """Attach envelopes, each with the type of its predicate, beside existing ones.

    Raises as ImageRepository does.
    """
    image = repository.image(image_digest)
    if image is None or image.digest != image_digest:
        raise InfrastructureError(f"{repository.name}@{image_digest} is not in the registry")
    tag = attestation_tag(image_digest)
    layers = _layers(repository.image(tag))
    for predicate_type, envelope in envelopes:
        digest = digest_of(envelope)
        repository.push_blob(io.BytesIO(envelope), len(envelope), digest)
        annotations = {"dev.cosignproject.cosign/signature": "", "predicateType": predicate_type}
        layers.append(
            {"mediaType": ENVELOPE, "size": len(envelope), "digest": digest, "annotations": annotations}
        )
    manifest = {
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": ARTIFACT_TYPE,
        "config": {"mediaType": _EMPTY_TYPE, "size": len(_EMPTY), "digest": digest_of(_EMPTY)},
        "layers": layers,
        "subject": {"mediaType": image.media_type, "size": len(image.manifest), "digest": image_digest},
    }
    attested = ImageManifest(OCI_MANIFEST, json.dumps(manifest, separators=(",", ":")).encode(), _EMPTY)
    repository.push_image(attested, tag)
    if not repository.has_referrers_api(image_digest):
        _list_as_referrer(repository, image_digest, attested)


def _list_as_referrer(repository: ImageRepository, image_digest: str, attested: ImageManifest) -> None:
    """Replace our entry in the index of referrers; entries of other tools stay."""
    tag = referrers_tag(image_digest)
    existing = repository.index(tag)
    others = [
        entry
        for entry in (existing or {}).get("manifests") or ()
        if isinstance(entry, dict) and entry.get("artifactType") != ARTIFACT_TYPE
    ]
    entry = {
        "mediaType": OCI_MANIFEST,
        "size": len(attested.manifest),
        "digest": attested.digest,
        "artifactType": ARTIFACT_TYPE,
    }
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [*others, entry]}
    repository.push_manifest(tag, json.dumps(index, separators=(",", ":")).encode(), OCI_INDEX)


def _layers(manifest: ImageManifest | None) -> list[dict[str, Any]]:
    """Return the envelopes that a manifest lists; none for one that is malformed."""
    try:
        layers = json.loads(manifest.manifest)["layers"] if manifest else []
        return [layer for layer in layers if layer["mediaType"] == ENVELOPE and layer["size"] >= 0]
    except (ValueError, KeyError, TypeError):
        return []
