"""Keys of images: every input counts under its name; the same inputs give the same key in each release."""

import hashlib
import json

import pytest

from plan.base.read import BaseDockerfile
from plan.keys import build_key, combined_hash, dependencies_key, tree_hash
from plan.make import Plan
from plan.packages.dependencies import DependencyDeclaration
from plan.packages.dockerfile import dockerfile


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_tree_hash_covers_path_mode_and_content_in_any_order() -> None:
    text = '{"files":[["a\\u00e9",false,"01"],["b",true,"02"]],"kind":"tree"}'
    assert tree_hash([("a\xe9", False, "01"), ("b", True, "02")]) == sha256(text)
    assert tree_hash([("b", True, "02"), ("a\xe9", False, "01")]) == sha256(text)


def test_hash_with_outer_projects_covers_each_by_directory() -> None:
    assert combined_hash("t", {}) == "t"
    assert combined_hash("t", {"lib": "1"}) == sha256('{"kind":"trees","outside":{"lib":"1"},"source":"t"}')


def test_build_key_covers_source_plan_dependencies_and_runner() -> None:
    assert build_key("t", Plan("python", "main:kickoff", "3.11"), "d", "r") == sha256(
        '{"dependencies":"d","kind":"build","plan":{"entrypoint":"main:kickoff","envRequired":[],'
        '"framework":"python","python":"3.11"},"runner":"r","tree":"t"}'
    )


@pytest.mark.parametrize(
    ("declaration", "more"),
    [
        (DependencyDeclaration("", ()), {}),
        (DependencyDeclaration("requirements.txt", ("a",)), {"files": {"requirements.txt": "a\n"}}),
        (DependencyDeclaration("", (), private_index=True, build_requires=("b",)), {}),
        (
            DependencyDeclaration("requirements.txt", ("a",), private_index=True, build_requires=("b",)),
            {"files": {"requirements.txt": "a\n"}, "private_index": {"name": "index", "tools": ["b"]}},
        ),
        (DependencyDeclaration("pyproject.toml", (), projects=("lib",)), {"tree": "tree"}),
        (DependencyDeclaration("", (), base=BaseDockerfile("Dockerfile", ())), {}),
        (DependencyDeclaration("", (), base=BaseDockerfile("Dockerfile", (), ("a.txt",))), {"copied": "sha"}),
    ],
)
def test_dependencies_key_covers_only_what_the_image_contains(
    declaration: DependencyDeclaration, more: dict[str, object]
) -> None:
    parts = {
        "kind": "dependencies",
        "files": {},
        "python": "3.11",
        "base": "image",
        "dockerfile": dockerfile("image", declaration, python="3.11"),
        **more,
    }
    key = dependencies_key(declaration, "3.11", "image", "tree", "index", "sha")
    assert key == sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")))


def test_private_index_and_copied_files_are_optional() -> None:
    declaration = DependencyDeclaration(
        "", ("a",), base=BaseDockerfile("Dockerfile", (), ("a.txt",)), private_index=True
    )
    assert dependencies_key(declaration, "3.11", "image", "tree") == dependencies_key(
        declaration, "3.11", "image", "tree", "", ""
    )
