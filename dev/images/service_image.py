"""Service image: the repository's Dockerfile, built on the cluster when its content has changed."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from dev import files
from dev.cluster.kube_client import HttpKubeApi
from dev.images import kaniko, oci
from dev.images.images import ImageReferences
from dev.progress import StepProgress
from dev.registry import access
from dev.settings import REGISTRY, REPOSITORY, Settings

REPOSITORY_NAME = "crewyard/service"
PACKAGES = (
    "api", "build", "controller", "crds", "egress", "http_server", "internal_tls", "kube", "plan", "runner",
)  # fmt: skip
_FILES = ("Dockerfile", "requirements/service.txt")
_EXCLUDED = {"__pycache__"}


def context_files(root: Path = REPOSITORY) -> Iterator[tuple[str, Path]]:
    """Yield the files of the build context, sorted, as (name in the context, path)."""
    names = list(_FILES)
    for package in PACKAGES:
        for path in (root / package).rglob("*"):
            if path.is_file() and not _EXCLUDED & set(path.parts) and path.suffix != ".pyc":
                names.append(str(path.relative_to(root)))
    for name in sorted(names):
        yield name, root / name


def key(images: ImageReferences, root: Path = REPOSITORY) -> str:
    """Return a hash of all inputs of the image."""
    digest = hashlib.sha256(f"{images.base}\n".encode())
    for name, path in context_files(root):
        blob = path.read_bytes()
        digest.update(f"{name} {len(blob)}\n".encode() + blob)
    return digest.hexdigest()


def stage(target: Path, root: Path = REPOSITORY) -> None:
    """Fill `target` with the build context, readable by all users."""
    shutil.rmtree(target, ignore_errors=True)
    for package in PACKAGES:
        (target / package).mkdir(parents=True, exist_ok=True)
    for name, path in context_files(root):
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        copy.chmod(0o644)


def ensure(settings: Settings, kube: HttpKubeApi, images: ImageReferences, progress: StepProgress) -> str:
    """Return the image reference of the current code by digest. Raises DevClusterError if the build fails."""
    record_file = settings.data / "images" / "crewyard-service.json"
    content_hash = key(images)
    if record_file.exists():
        recorded = json.loads(record_file.read_text())
        if recorded["key"] == content_hash and oci.exists(REPOSITORY_NAME, recorded["digest"]):
            return f"{REGISTRY}/{REPOSITORY_NAME}@{recorded['digest']}"
    context = settings.data / "context"
    stage(context)
    credential = settings.configuration / "service-image"
    files.write(
        credential / "config.json", access.docker_config(settings, REPOSITORY_NAME), files.PRIVATE_MODE
    )
    with progress.step("service image (Kaniko, on the cluster)") as step:
        log = settings.logs / "service-image.log"
        digest = kaniko.build(
            kube, step, log, context, credential, REPOSITORY_NAME, images.base, images.kaniko
        )
        step.detail = ""
    files.write(record_file, json.dumps({"key": content_hash, "digest": digest}))
    return f"{REGISTRY}/{REPOSITORY_NAME}@{digest}"
