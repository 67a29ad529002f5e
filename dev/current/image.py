"""Service image for other clusters: a given reference, or an image that Docker builds and pushes."""

import json
import shutil

from dev import files
from dev.cluster.kube_client import KubeApi, KubeApiError
from dev.current.options import InstallOptions
from dev.errors import DevClusterError
from dev.images import service_image
from dev.images.images import ImageReferences
from dev.process import command
from dev.process.command import CommandFailed
from dev.progress import StepProgress
from dev.settings import Settings

_BUILD_TIMEOUT_SECONDS = 1200
_PULL_TIMEOUT_SECONDS = 900


def ensure(settings: Settings, options: InstallOptions, kube: KubeApi, progress: StepProgress) -> str:
    """Return the reference by digest. Raises DevClusterError if no image is given and none can be built."""
    if options.image:
        return options.image
    repository = f"{options.registry}/crewyard/service"
    return build(settings, repository, options.base_image, progress, options.insecure, _platform(kube))


def _platform(kube: KubeApi) -> str:
    """Return the nodes' platform; empty if it is unknown. Raises DevClusterError if there are several."""
    try:
        nodes = kube.call("GET", "/api/v1/nodes")["items"]
    except KubeApiError as error:
        if error.status != 403:
            raise
        return ""  # the user may not list nodes
    found = sorted({node["status"]["nodeInfo"]["architecture"] for node in nodes})
    if len(found) > 1:
        raise DevClusterError(
            f"The nodes have the architectures {', '.join(found)}, and `make up` builds the image for one. "
            "Build it from the Dockerfile for all, push it, and set CREWYARD_IMAGE=repository@sha256:…"
        )
    return f"linux/{found[0]}" if found else ""


def build(
    settings: Settings, repository: str, base: str, progress: StepProgress, insecure: bool, platform: str = ""
) -> str:
    """Build and push the current code with Docker unless the registry has it. Raises DevClusterError.

    Without `platform` the image is for this machine's.
    """
    key = service_image.key(ImageReferences(pause="", kaniko="", base=f"{base} {platform}".strip()))
    record_file = settings.data / "service-image.json"
    if record_file.exists():
        recorded = json.loads(record_file.read_text())
        image = str(recorded["image"])
        if recorded["key"] == key and image.startswith(f"{repository}@") and _exists(image, insecure):
            return image
    if shutil.which("docker") is None:
        raise DevClusterError(
            "Docker is needed to build the service image and is not installed. Build it from the Dockerfile "
            "elsewhere, push it, and set CREWYARD_IMAGE=repository@sha256:…"
        )
    context = settings.data / "context"
    service_image.stage(context)
    tag = f"{repository}:{key[:16]}"
    flags = [f"--platform={platform}"] if platform else []
    with progress.step(f"image {tag}") as step:
        pull(base)
        for arguments in (
            ("build", *flags, f"--build-arg=BASE_IMAGE={base}", f"--tag={tag}", str(context)),
            ("push", tag),
        ):
            log = settings.logs / f"image-{arguments[0]}.log"
            command.run(["docker", *arguments], step=step, log=log, seconds=_BUILD_TIMEOUT_SECONDS)
        step.detail = ""
    image = pushed_reference(repository, tag)
    files.write(record_file, json.dumps({"key": key, "image": image}))
    return image


def _exists(image: str, insecure: bool) -> bool:
    try:
        command.read_output(["docker", "manifest", "inspect", *(["--insecure"] if insecure else []), image])
    except CommandFailed:
        return False
    return True


def pull(image: str) -> None:
    """Pull an image. If that fails and Docker has a copy, use the copy; otherwise raise CommandFailed."""
    try:
        command.read_output(["docker", "pull", "--quiet", image], seconds=_PULL_TIMEOUT_SECONDS)
    except CommandFailed:
        try:
            command.read_output(["docker", "image", "inspect", image])
        except CommandFailed:
            pass
        else:
            return
        raise


def pushed_reference(repository: str, tag: str) -> str:
    """Return the reference by digest of a pushed tag. Raises DevClusterError."""
    inspect = ["docker", "image", "inspect", "--format", "{{json .RepoDigests}}", tag]
    for reference in json.loads(command.read_output(inspect)):
        if str(reference).startswith(f"{repository}@sha256:"):
            return str(reference)
    raise DevClusterError(f"Docker pushed {tag} and did not report its digest.")
