"""Provenance and SBOM of an image in a real registry: attached, found, verified, removed with the image."""

import gzip
import hashlib
import io
import json
import random
import shutil
import subprocess
import tarfile
import urllib.request
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import zstandard
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from build.image.manifest import OCI_INDEX, PushedLayer, digest_of, image_of_layers
from build.logs import BuildLog
from build.registry import attachments
from build.registry.repository import ImageRepository
from controller.attestation import verify
from controller.attestation.reconcile import AttestationReconciler
from controller.attestation.registry import ImageRegistry
from controller.attestation.signing import SigningKeys, parse_private_key, parse_public_keys, signing_keys
from controller.attestation.statements import PROVENANCE_TYPE, SBOM_TYPE
from controller.attestation.verify import ImageVerifier
from controller.config import ControllerConfig
from crds.objects import Deployment, Project
from tests.registry.test_prune import prune, settings

from .conftest import RunningRegistry

COMMIT = "c" * 40


@dataclass(frozen=True)
class KeyFiles:
    """A key pair as an administrator has it."""

    private: str
    public: str


def new_keys() -> KeyFiles:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    return KeyFiles(private, public)


def tar(*names: str, last: bytes = b"", last_name: str = "last") -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name))
        header = tarfile.TarInfo(last_name)
        header.size = len(last)
        archive.addfile(header, io.BytesIO(last))
    return plain.getvalue()


SITE = "usr/local/lib/python3.11/site-packages"
LARGE = random.Random(0).randbytes(5 << 19)
"""More than one read of the network."""
MEMBER_BYTES = 11_000
BASE = tar(
    f"{SITE}/pip-25.0.dist-info/METADATA",
    f"{SITE}/old_thing-1.0.dist-info/METADATA",
    "etc/passwd",
    last=LARGE,
)
DEPENDENCIES = tar(
    f"{SITE}/Flask-3.1.0.dist-info/METADATA",
    f"{SITE}/.wh.old_thing-1.0.dist-info",
    f"{SITE}/old_thing-1.1.dist-info/METADATA",
    last=b"Package: git\nStatus: install ok installed\nVersion: 1:2.39.5-0+deb12u2\nArchitecture: amd64\n",
    last_name="var/lib/dpkg/status",
)


def push_image(
    registry: RunningRegistry, project: str = "demo", extra: str = "", namespace: str = "crews"
) -> str:
    """Push an image of two layers, as Kaniko compresses them; return its reference."""
    repository = ImageRepository(f"{registry.address}/{namespace}/{project}", insecure=True)
    layers = []
    for packed, zstd in (
        # Parallel compressors write several gzip members.
        (gzip.compress(BASE[:-MEMBER_BYTES], mtime=0) + gzip.compress(BASE[-MEMBER_BYTES:], mtime=0), False),
        (zstandard.compress(DEPENDENCIES), True),
        (gzip.compress(tar(f"app/main{extra}.py"), mtime=0), False),
    ):
        repository.push_blob(io.BytesIO(packed), len(packed), digest_of(packed))
        layers.append(PushedLayer(digest_of(packed), len(packed), zstd))
    diff_ids = [f"sha256:{hashlib.sha256(plain).hexdigest()}" for plain in (BASE, DEPENDENCIES)]
    config = json.dumps(
        {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": diff_ids}}
    ).encode()
    digest = repository.push_image(image_of_layers(config, layers), f"build-{extra or 'x'}")
    return f"{repository.name}@{digest}"


def config_of(registry: RunningRegistry, keys: SigningKeys, verify: bool = True) -> ControllerConfig:
    return ControllerConfig(
        "crews",
        "http://api",
        "k" * 32,
        "service@sha256:" + "5" * 64,
        "kaniko:v1",
        {"3.11": "docker.io/library/python@sha256:" + "b" * 64},
        registry.address,
        public_url="https://crews.example.com",
        registry_insecure=True,
        signing=keys,
        verify_images=verify,
    )


def deployment_of(image: str, project: str = "demo") -> Deployment:
    built = {"type": "Built", "status": "True", "lastTransitionTime": "2026-11-23T10:01:00Z"}
    return Deployment(
        {
            "metadata": {"name": "dep-a", "uid": "uid-a", "creationTimestamp": "2026-11-23T10:00:00Z"},
            "spec": {
                "project": project,
                "source": {"git": {"url": "https://git.example.com/demo.git", "commit": COMMIT}},
            },
            "status": {"image": image, "plan": {"python": "3.11"}, "tree": "t1", "conditions": [built]},
        }
    )


PROJECT = Project({"metadata": {"name": "demo"}, "spec": {}})


class Installation:
    """What signs and verifies in a controller, without the cluster: no Project here names a Secret."""

    def __init__(
        self, config: ControllerConfig, started: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    ) -> None:
        self.config = config
        self.registry = ImageRegistry(None, config)  # type: ignore[arg-type]
        self._reconciler = AttestationReconciler(None, config, self.registry, started=started)  # type: ignore[arg-type]

    async def attest(self, image: str, project: Project = PROJECT) -> None:
        assert self.config.signing is not None
        await self._reconciler._attest(
            project, deployment_of(image, project.name), image, self.config.signing
        )

    async def problem(self, image: str) -> str | None:
        return await ImageVerifier(self.registry, self.config).problem(PROJECT, deployment_of(image))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for each answer of the registry, also on a slow machine."""
    monkeypatch.setattr(verify, "ANSWER_SECONDS", 60.0)


@pytest.fixture
def keys() -> KeyFiles:
    return new_keys()


@pytest.fixture
async def installation(registry: RunningRegistry, keys: KeyFiles) -> Any:
    made = Installation(config_of(registry, signing_keys(parse_private_key(keys.private), ())))
    yield made
    await made.registry.close()


def stored(image: str) -> list[bytes]:
    """Return the envelopes in the registry."""
    name, _, digest = image.partition("@")
    return attachments.read_envelopes(ImageRepository(name, insecure=True), digest)


def statements(image: str, keys: SigningKeys) -> dict[str, dict[str, Any]]:
    read = [keys.verified(envelope) for envelope in stored(image)]
    return {one["predicateType"]: one for one in read if one is not None}


async def test_image_gets_provenance_and_sbom(registry: RunningRegistry, installation: Installation) -> None:
    image = push_image(registry)
    assert "no provenance" in str(await installation.problem(image))
    await installation.attest(image)
    assert installation.config.signing is not None
    found = statements(image, installation.config.signing)
    definition = found[PROVENANCE_TYPE]["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {
        "namespace": "crews",
        "project": "demo",
        "source": {"git": {"url": "https://git.example.com/demo.git", "commit": COMMIT}},
    }
    assert definition["resolvedDependencies"][0]["digest"] == {"gitCommit": COMMIT}
    assert definition["resolvedDependencies"][1]["digest"] == {"sha256": "b" * 64}
    metadata = found[PROVENANCE_TYPE]["predicate"]["runDetails"]["metadata"]
    assert (metadata["startedOn"], metadata["finishedOn"]) == ("2026-11-23T10:00:00Z", "2026-11-23T10:01:00Z")
    document = found[SBOM_TYPE]["predicate"]
    assert [component["purl"] for component in document["components"]] == [
        "pkg:pypi/flask@3.1.0",
        "pkg:pypi/old-thing@1.1",
        "pkg:pypi/pip@25.0",
        "pkg:deb/debian/git@1%3A2.39.5-0%2Bdeb12u2?arch=amd64",
    ]
    assert document["compositions"] == [{"aggregate": "complete", "assemblies": [image]}]
    assert await installation.problem(image) is None


async def test_settings_of_a_later_controller_are_left_out(registry: RunningRegistry, keys: KeyFiles) -> None:
    signing = signing_keys(parse_private_key(keys.private), ())
    later = Installation(config_of(registry, signing), datetime(2026, 11, 23, 10, 0, 30, tzinfo=UTC))
    image = push_image(registry)
    try:
        await later.attest(image)
    finally:
        await later.registry.close()
    definition = statements(image, signing)[PROVENANCE_TYPE]["predicate"]["buildDefinition"]
    assert [one["name"] for one in definition["resolvedDependencies"]] == ["source"]
    assert definition["internalParameters"] == {"deployment": "dep-a", "tree": "t1"}


async def test_attesting_again_changes_nothing(registry: RunningRegistry, installation: Installation) -> None:
    image = push_image(registry)
    await installation.attest(image)
    before = len(registry.pushes())
    await installation.attest(image)
    assert len(registry.pushes()) == before


async def test_referrers_are_listed_for_registries_without_the_api(
    registry: RunningRegistry, installation: Installation
) -> None:
    image = push_image(registry)
    name, _, digest = image.partition("@")
    repository = ImageRepository(name, insecure=True)
    assert not repository.has_referrers_api(digest)
    other = {"mediaType": "x", "digest": repository.digest("build-x"), "size": 1, "artifactType": "scan"}
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [other]}
    tag = attachments.referrers_tag(digest)
    repository.push_manifest(tag, json.dumps(index).encode(), OCI_INDEX)
    await installation.attest(image)
    listed = repository.index(tag)
    assert listed is not None
    assert listed["manifests"][0] == other
    assert listed["manifests"][1]["digest"] == repository.digest(attachments.attestation_tag(digest))
    request = urllib.request.Request(
        f"http://{registry.address}/v2/crews/demo/manifests/{listed['manifests'][1]['digest']}",
        headers={"Accept": "application/vnd.oci.image.manifest.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        assert json.loads(response.read())["subject"]["digest"] == digest


async def test_signature_of_another_key_counts_for_nothing(
    registry: RunningRegistry, installation: Installation
) -> None:
    image = push_image(registry)
    strange = Installation(config_of(registry, signing_keys(parse_private_key(new_keys().private), ())))
    try:
        await strange.attest(image)
    finally:
        await strange.registry.close()
    assert "no provenance" in str(await installation.problem(image))
    # Its own are added; the others stay.
    await installation.attest(image)
    assert await installation.problem(image) is None


async def test_previous_key_is_accepted_after_a_rotation(
    registry: RunningRegistry, installation: Installation, keys: KeyFiles
) -> None:
    image = push_image(registry)
    await installation.attest(image)
    rotated = signing_keys(parse_private_key(new_keys().private), parse_public_keys(keys.public))
    later = Installation(config_of(registry, rotated))
    forgetful = Installation(config_of(registry, signing_keys(rotated.signer, ())))
    try:
        assert await later.problem(image) is None
        assert "no provenance" in str(await forgetful.problem(image))
    finally:
        await later.registry.close()
        await forgetful.registry.close()


async def test_attestations_of_another_image_or_project_do_not_count(
    registry: RunningRegistry, installation: Installation
) -> None:
    image, other = push_image(registry), push_image(registry, extra="2")
    await installation.attest(image)
    repository = ImageRepository(image.partition("@")[0], insecure=True)
    stolen = stored(image)
    attachments.attach(repository, other.partition("@")[2], [(PROVENANCE_TYPE, one) for one in stolen])
    assert "no provenance" in str(await installation.problem(other))
    foreign = push_image(registry, project="beta", extra="beta")
    await installation.attest(foreign, Project({"metadata": {"name": "beta"}, "spec": {}}))
    assert "not in the project's repository" in str(await installation.problem(foreign))
    # The same image in the project's repository, with the attestations of the other project.
    copy, envelopes = push_image(registry, extra="beta"), stored(foreign)
    attachments.attach(repository, copy.partition("@")[2], [(PROVENANCE_TYPE, one) for one in envelopes])
    assert "does not name the project demo" in str(await installation.problem(copy))


async def test_prune_removes_the_attestations_too(
    registry: RunningRegistry, installation: Installation
) -> None:
    image, kept = push_image(registry), push_image(registry, extra="kept")
    for one in (image, kept):
        await installation.attest(one)
    digest, kept_digest = image.partition("@")[2], kept.partition("@")[2]
    assert prune(settings(registry, [digest]), BuildLog()) == {"outcome": "pruned", "removed": 1}
    repository = ImageRepository(f"{registry.address}/crews/demo", insecure=True)
    tags = [attachments.attestation_tag(digest), attachments.referrers_tag(digest)]
    assert [repository.digest(tag) for tag in tags] == [None, None]
    assert await installation.problem(kept) is None
    assert repository.digest(attachments.referrers_tag(kept_digest)) is not None


@pytest.mark.nightly
async def test_cosign_verifies_image_and_refuses_a_tampered_one(
    registry: RunningRegistry, installation: Installation, keys: KeyFiles, tmp_path: Path
) -> None:
    cosign = shutil.which("cosign")
    assert cosign is not None, "cosign is missing: run make nightly-tools"
    public, strange = tmp_path / "cosign.pub", tmp_path / "strange.pub"
    public.write_text(keys.public)
    strange.write_text(new_keys().public)
    image, tampered = push_image(registry), push_image(registry, extra="changed")
    await installation.attest(image)

    def verify(reference: str, kind: str, key: Path = public) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [cosign, "verify-attestation", "--key", str(key), "--type", kind, "--insecure-ignore-tlog",
             "--allow-insecure-registry", reference],
            capture_output=True,
            text=True,
            timeout=120,
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        )  # fmt: skip

    for kind in ("slsaprovenance1", "cyclonedx"):
        done = verify(image, kind)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[0])["payloadType"] == "application/vnd.in-toto+json"
    assert verify(image, "slsaprovenance1", strange).returncode != 0
    assert verify(tampered, "slsaprovenance1").returncode != 0
    # The attestations of the image, moved to the tampered one: the subject is another.
    repository = ImageRepository(image.partition("@")[0], insecure=True)
    stolen = stored(image)
    attachments.attach(repository, tampered.partition("@")[2], [(PROVENANCE_TYPE, one) for one in stolen])
    assert verify(tampered, "slsaprovenance1").returncode != 0
