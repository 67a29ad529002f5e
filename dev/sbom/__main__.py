"""Write sbom/service.cdx.json, runner.cdx.json and client.cdx.json: `python3 -m dev.sbom [DIRECTORY]`."""

import hashlib
import json
import os
import sys
import tomllib
from pathlib import Path

from dev import settings
from dev.errors import DevClusterError
from dev.images import service_image
from dev.images.base_image import SUITE
from dev.sbom import document, image
from dev.sbom.image import InstalledPackage
from dev.settings import REPOSITORY


def service(state: settings.Settings) -> dict[str, object]:
    """Return the document of the image built last. Raises DevClusterError if there is none."""
    record_file = state.data / "images" / "crewyard-service.json"
    if not record_file.exists():
        raise DevClusterError("The service's image has not been built. Run `make up`.")
    contents = image.read(service_image.REPOSITORY_NAME, json.loads(record_file.read_text())["digest"])
    locked = document.pinned((REPOSITORY / "requirements/service.txt").read_text())
    components = []
    for package in contents.python:
        version, hashes = locked.get(document.normal(package.name), ("", []))
        components.append(document.python(package, hashes if version == package.version else ()))
    components += [document.debian(package, SUITE) for package in contents.debian]
    return document.document("crewyard-service", contents.digest, "container", components)


def runner() -> dict[str, object]:
    """Return the document of the layer in every crew's image: only files of this repository."""
    files = list((REPOSITORY / "runner").rglob("*.py"))
    components = [
        document.file(str(path.relative_to(REPOSITORY)), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in files
    ]
    return document.document(
        "crewyard-runner", _version(REPOSITORY / "pyproject.toml"), "application", components
    )


def client() -> dict[str, object]:
    """Return the document of the client distribution, with its dependencies in the tested versions."""
    project = tomllib.loads((REPOSITORY / "client/pyproject.toml").read_text())["project"]
    locked = document.pinned((REPOSITORY / "requirements/dev.txt").read_text())
    components = []
    for requirement in project["dependencies"]:
        name = document.normal(requirement.split(">")[0].split("=")[0].split("[")[0].strip())
        version, hashes = locked[name]
        components.append(document.python(InstalledPackage(name, version), hashes))
    return document.document(project["name"], project["version"], "application", components)


def _version(path: Path) -> str:
    return str(tomllib.loads(path.read_text())["project"]["version"])


def main(arguments: list[str]) -> int:
    """Write all three and print the number of components in each."""
    target = Path(arguments[0] if arguments else "sbom")
    try:
        documents = {
            "service": service(settings.from_environment(os.environ)),
            "runner": runner(),
            "client": client(),
        }
    except DevClusterError as error:
        print(error, file=sys.stderr)
        return error.code
    target.mkdir(parents=True, exist_ok=True)
    for name, content in documents.items():
        path = target / f"{name}.cdx.json"
        path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
        components = content["components"]
        assert isinstance(components, list)
        print(f"{path}: {len(components)} components")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
