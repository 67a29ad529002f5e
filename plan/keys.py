"""Hashes of the inputs of images. Called by the build pods, which tag images with them.

Every value is hashed with its name as canonical JSON; different inputs never give the same text.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping

from .make import Plan
from .packages.dependencies import DependencyDeclaration
from .packages.dockerfile import dockerfile


def dependencies_key(
    declaration: DependencyDeclaration,
    python: str,
    base_image: str,
    tree: str,
    index: str = "",
    copied: str = "",
) -> str:
    """Return the key of the dependency image: 64 hexadecimal digits.

    `tree` is the hash of the source, included only where a project of it is installed; `index` is the Secret
    of the private index, if any; `copied` is the hash of the files that the crew's Dockerfile can copy.
    """
    parts: dict[str, object] = {
        "kind": "dependencies",
        "files": {name: data.decode() for name, data in declaration.files().items()},
        "python": python,
        "base": base_image,
        "dockerfile": dockerfile(base_image, declaration, python=python),
    }
    if declaration.base and declaration.base.copied:
        parts["copied"] = copied
    if declaration.projects:
        parts["tree"] = tree
    # An installation shares the image without dependencies.
    if declaration.private_index and not declaration.empty:
        parts["private_index"] = {"name": index, "tools": list(declaration.build_requires)}
    return digest(parts)


def base_key(python: str, base_image: str) -> str:
    """Return the key of the image without dependencies."""
    return dependencies_key(DependencyDeclaration(""), python, base_image, "")


def base_keys(base_images: Mapping[str, str]) -> dict[str, str]:
    """Return the Python version of each image without dependencies, by its key."""
    return {base_key(python, image): python for python, image in base_images.items()}


def tree_hash(entries: Iterable[tuple[str, bool, str]]) -> str:
    """Return the hash of a source tree from (path, executable, SHA-256 of the bytes), in any order."""
    return digest({"kind": "tree", "files": [[path, bool(run), sha] for path, run, sha in sorted(entries)]})


def combined_hash(tree: str, outside: Mapping[str, str]) -> str:
    """Return the hash of a source and of the projects outside of it, by directory."""
    return digest({"kind": "trees", "source": tree, "outside": dict(outside)}) if outside else tree


def build_key(tree: str, plan: Plan, dependencies: str, runner: str) -> str:
    """Return the key of a crew's image: equal keys mean equivalent images."""
    return digest(
        {
            "kind": "build",
            "tree": tree,
            "plan": plan.as_status(),
            "dependencies": dependencies,
            "runner": runner,
        }
    )


def digest(value: object) -> str:
    """Return the hexadecimal SHA-256 of a value as canonical JSON."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
