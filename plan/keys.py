"""What images are built from, as hashes. Called by the build pods, which name images by them.

Every value goes in under its name through canonical JSON, so that no two sets
of inputs run together into one text.
"""

import hashlib
import json
from collections.abc import Iterable

from .make import Plan
from .packages.dependencies import Declaration
from .packages.dockerfile import dockerfile


def dependencies_key(
    declaration: Declaration, python: str, base_image: str, tree: str, index: str = ""
) -> str:
    """The name of the dependency image: 64 hexadecimal digits.

    `tree` is the hash of the source, which counts only where a project of it is installed;
    `index` names the private index, where there is one.
    """
    parts: dict[str, object] = {
        "kind": "dependencies",
        "files": {name: data.decode() for name, data in declaration.files().items()},
        "python": python,
        "base": base_image,
        "dockerfile": dockerfile(base_image, declaration),
    }
    if declaration.projects:
        parts["tree"] = tree
    if declaration.private_index:
        parts["private_index"] = {"name": index, "tools": list(declaration.build_requires)}
    return digest(parts)


def tree_hash(entries: Iterable[tuple[str, bool, str]]) -> str:
    """What a source tree contains: over (path, executable, SHA-256 of the bytes), in any order."""
    return digest({"kind": "tree", "files": [[path, bool(run), sha] for path, run, sha in sorted(entries)]})


def build_key(tree: str, plan: Plan, dependencies: str, runner: str) -> str:
    """What a crew's image is built from: equal keys mean images that do the same."""
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
    """The SHA-256, in hexadecimal, of a JSON value in its canonical form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
