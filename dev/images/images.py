"""Images for a node without internet registries, built here and stored in the local registry.

pause (holds a pod's namespaces), the Kaniko executor, and the Python base images. Each is built again only if
its inputs change or the registry no longer has it.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from dev import files
from dev.errors import DevClusterError
from dev.images import base_image, cpython_jar, oci
from dev.packages import program_path
from dev.progress import Step, StepProgress
from dev.registry import access
from dev.settings import KANIKO_VERSION, Settings

PYTHON = "3.11"
# The others take minutes on a slow mirror; `make pythons` adds them.
DEFAULT_PYTHONS = (PYTHON, "3.13")
PYTHONS_VARIABLE = "CREWYARD_PYTHONS"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class ImageReferences:
    """References by digest."""

    pause: str
    kaniko: str
    base: str


@dataclass(frozen=True)
class ImageRecipe:
    """How to build an image: `make` fills a directory and returns the image."""

    repository: str
    tag: str
    key: str
    make: Callable[[Path, Step], oci.OciImage]


def content_key(parts: Iterable[Path | str | Mapping[str, object]]) -> str:
    """Return a hash of files, texts and settings."""
    digest = hashlib.sha256()
    for part in parts:
        blob = part.read_bytes() if isinstance(part, Path) else json.dumps(part, sort_keys=True).encode()
        digest.update(f"{len(blob)}\n".encode() + blob)
    return digest.hexdigest()


def pause_recipe() -> ImageRecipe:
    """Return the recipe of the pause image: catatonit waits, reaps orphans and exits on a signal."""
    binary = Path(program_path("catatonit"))
    config: dict[str, object] = {"Entrypoint": ["/pause", "-P"], "User": "65535:65535"}

    def make(work: Path, step: Step) -> oci.OciImage:
        oci.write_tar(work / "layer.tar", {"pause": binary})
        return oci.OciImage([oci.layer(work / "layer.tar", work / "layer.gz")], config)

    return ImageRecipe("crewyard/pause", "1", content_key([binary, config]), make)


def kaniko_recipe(executor: Path) -> ImageRecipe:
    """Return the recipe of the Kaniko image: executor, the host's certificates, the usual environment."""
    config: dict[str, object] = {
        "Entrypoint": ["/kaniko/executor"],
        "WorkingDir": "/workspace",
        "Env": [
            "HOME=/root",
            "USER=root",
            "PATH=/usr/local/bin:/kaniko",
            "SSL_CERT_DIR=/kaniko/ssl/certs",
            "DOCKER_CONFIG=/kaniko/.docker/",
        ],
    }

    def make(work: Path, step: Step) -> oci.OciImage:
        files = {"kaniko/executor": executor, "kaniko/ssl/certs/ca-certificates.crt": CA_BUNDLE}
        oci.write_tar(work / "layer.tar", files)
        return oci.OciImage([oci.layer(work / "layer.tar", work / "layer.gz")], config)

    return ImageRecipe(
        "crewyard/kaniko", f"v{KANIKO_VERSION}", content_key([executor.name, CA_BUNDLE, config]), make
    )


def base_recipe(environment: Mapping[str, str], python: str = PYTHON) -> ImageRecipe:
    """Return the recipe of a substitute for `python:3.11-slim` or another Python's."""
    sources = base_image.sources(base_image.SUITES[python])
    config = base_image.config(environment)

    def make(work: Path, step: Step) -> oci.OciImage:
        return base_image.build(work, step, python, sources, CA_BUNDLE, config)

    jar = cpython_jar.JARS.get(python, ())
    key = content_key([sources, CA_BUNDLE, config, *base_image.packages(python), base_image.VERSION, *jar])
    return ImageRecipe("library/python", f"{python}-slim", key, make)


def requested_pythons(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the Pythons that `up` is to offer. Raises DevClusterError for an unknown one."""
    return choose_pythons(environment, DEFAULT_PYTHONS, base_image.SUITES, "the dev cluster has")


def choose_pythons(
    environment: Mapping[str, str], default: tuple[str, ...], known: Iterable[str], source: str
) -> tuple[str, ...]:
    """Return the Pythons of CREWYARD_PYTHONS, else `default`. Raises DevClusterError for one not in `known`.

    `source` is who has the known ones, with its verb.
    """
    text = environment.get(PYTHONS_VARIABLE, "").replace(",", " ")
    versions = tuple(dict.fromkeys((PYTHON, *text.split()))) if text.strip() else default
    offered = tuple(known)
    unknown = [version for version in versions if version not in offered]
    if unknown:
        raise DevClusterError(
            f"{PYTHONS_VARIABLE} has {', '.join(unknown)}; {source} {', '.join(offered)}. Choose from these."
        )
    return versions


def offered_pythons(settings: Settings, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the Pythons to offer, the default one first: the requested ones and those of earlier calls."""
    return tuple(dict.fromkeys((PYTHON, *_recorded_pythons(settings), *requested_pythons(environment))))


def programs(versions: Iterable[str]) -> Mapping[str, str]:
    """Return the programs that build these base images, with their packages."""
    return cpython_jar.PROGRAMS if any(version in cpython_jar.JARS for version in versions) else {}


def record_pythons(settings: Settings, references: Mapping[str, str]) -> None:
    """Write the base images of the Pythons other than the default one."""
    others = {version: reference for version, reference in references.items() if version != PYTHON}
    files.write(_pythons_file(settings), json.dumps(others, indent=2))


def base_images(settings: Settings, built: ImageReferences) -> dict[str, str]:
    """Return the base image of each offered Python, the default one first."""
    recorded_pythons = _recorded_pythons(settings)
    return {
        PYTHON: built.base,
        **{version: recorded_pythons[version] for version in sorted(recorded_pythons)},
    }


def _recorded_pythons(settings: Settings) -> dict[str, str]:
    file = _pythons_file(settings)
    return dict(json.loads(file.read_text())) if file.exists() else {}


def _pythons_file(settings: Settings) -> Path:
    return settings.data / "pythons.json"


def ensure(settings: Settings, recipe: ImageRecipe, progress: StepProgress) -> str:
    """Return the image's reference by digest; build and push the image if the registry lacks it."""
    key = f"{recipe.tag} {recipe.key}"
    name = f"{recipe.repository.replace('/', '-')}-{recipe.tag}"
    record_file = settings.data / "images" / f"{name}.json"
    if record_file.exists():
        recorded_image = json.loads(record_file.read_text())
        digest = str(recorded_image["reference"]).partition("@")[2]
        if recorded_image["key"] == key and oci.exists(recipe.repository, digest):
            return str(recorded_image["reference"])
    record_file.parent.mkdir(parents=True, exist_ok=True)
    with progress.step(f"image {recipe.repository}:{recipe.tag}") as step:
        with tempfile.TemporaryDirectory(dir=record_file.parent) as work:
            image = recipe.make(Path(work), step)
            step.detail = "pushing"
            basic = access.basic(settings, recipe.repository)
            reference = oci.push(recipe.repository, recipe.tag, image, os.uname().machine, basic)
        step.detail = ""
    files.write(record_file, json.dumps({"key": key, "reference": reference}))
    return reference


def record(settings: Settings, images: ImageReferences) -> None:
    """Write the references for `deploy` and for people."""
    files.write(settings.data / "images.json", json.dumps(asdict(images), indent=2))


def recorded(settings: Settings) -> ImageReferences:
    """Return the references of the last `up`. Raises DevClusterError before the first one."""
    try:
        return ImageReferences(**json.loads((settings.data / "images.json").read_text()))
    except FileNotFoundError as error:
        raise DevClusterError("The images have not been built yet. Run `make up`.") from error
