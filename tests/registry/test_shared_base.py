"""The image of crews without dependencies, which an installation makes once, in a real registry."""

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from build.assemble import assemble
from build.logs import BuildLog
from build.registry import shared_base
from build.registry.credential import RegistryCredential
from build.registry.push import push_dependencies
from build.registry.repository import ImageRepository
from build.settings import BuildSettings, read_settings
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

from .conftest import RunningRegistry, ScopedRegistry, build_environment, kaniko_tarball

CREW = {"main.py": "def kickoff(inputs):\n    return inputs\n"}


class ProjectBuild:
    """Runs the steps of builds of one project."""

    def __init__(self, address: str, git: GitServer, directory: Path, project: str, auth: str = "") -> None:
        self.address, self.git, self.directory, self.project, self.auth = (
            address,
            git,
            directory,
            project,
            auth,
        )
        self.output = io.StringIO()
        self.proven: dict[str, dict[str, str]] = {"dependencies": {}, "shared": {}}
        self.runner = directory / "runner"
        self.runner.mkdir(exist_ok=True)

    def settings(self, commit: str, key: str | None = None, private_index: str = "") -> BuildSettings:
        step = {"dependencies": {"key": key}} if key else {"proven": self.proven}
        request = {"project": self.project, "private_index": private_index, **step}
        environment = build_environment(self.address, self.git, commit, **request)
        credential = RegistryCredential(self.auth, "push" if self.auth else "")
        return replace(read_settings(environment), registry_credential=credential)

    def assemble(self, commit: str, private_index: str = "") -> dict[str, Any]:
        return assemble(self.settings(commit, None, private_index), BuildLog(out=self.output), self.runner)

    def push(self, commit: str, *others: "ProjectBuild") -> str:
        """Do the work of the dependencies pod; return the key. `others` may take its image."""
        key = str(self.assemble(commit)["dependencies_key"])
        image = self.directory / "image.tar"
        kaniko_tarball(
            image, {"etc/passwd": b"crew:x:65532:65532::/home/crew:/bin/sh\n", "big": os.urandom(99)}
        )
        digest = push_dependencies(self.settings(commit, key), BuildLog(out=self.output), image)
        # As the controller proves it.
        self.proven["dependencies"][key] = digest
        for other in others:
            other.proven["shared"][key] = digest
        return key


def shared(address: str) -> ImageRepository:
    return ImageRepository(f"{address}/crews/{shared_base.NAME}", True)


def test_crews_without_dependencies_are_built_once_for_all_projects(
    registry: RunningRegistry, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    commit = demo.commit(CREW, "first")
    first, second = (ProjectBuild(registry.address, git, tmp_path, name) for name in ("one", "two"))
    assert first.assemble(commit)["outcome"] == "dependencies"
    key = first.push(commit, second)
    # A private index has no part in it, as nothing is installed.
    for private_index in ("", "index"):
        built = second.assemble(commit, private_index)
        assert (built["outcome"], built["dependencies_key"]) == ("built", key)
    assert built["image"].partition("@")[0] == f"{registry.address}/crews/two"
    own = ImageRepository(f"{registry.address}/crews/two", True)
    assert own.digest(f"deps-{key}") == shared(registry.address).digest(f"deps-{key}")
    assert first.assemble(commit)["outcome"] == "built"


def test_images_with_dependencies_are_not_shared(
    registry: RunningRegistry, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    entrypoint = '[deployment]\nentrypoint = "pkg.crew:go"\n'
    for name, more in {
        "lines": {"requirements.txt": "six\n"},
        "packages": {"crew.toml": '[build]\npackages = ["git"]\n'},
        "project": {
            "crew.toml": entrypoint,
            "lib/pkg/crew.py": "def go(): ...\n",
            "setup.cfg": "[metadata]\n",
        },
    }.items():
        first, second = (ProjectBuild(registry.address, git, tmp_path, f"{name}-{end}") for end in "ab")
        commit = demo.commit({**CREW, **more}, name)
        first.push(commit, second)
        assert second.assemble(commit)["outcome"] == "dependencies", name
    assert shared(registry.address).tags(10) == []


def test_without_the_shared_image_each_project_builds_its_own(
    scoped_registry: ScopedRegistry, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    commit, address = demo.commit(CREW, "first"), scoped_registry.registry.address
    one, two = (
        ProjectBuild(address, git, tmp_path, name, scoped_registry.auth(f"crews/{name}"))
        for name in ("one", "two")
    )
    key = one.push(commit, two)
    assert "is not copied to" in one.output.getvalue()
    assert one.assemble(commit)["outcome"] == "built"
    assert two.assemble(commit)["outcome"] == "dependencies"
    assert two.push(commit) == key
    assert two.assemble(commit)["outcome"] == "built"


def test_a_credential_for_the_shared_repository_shares_with_all(
    scoped_registry: ScopedRegistry, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    commit, address = demo.commit(CREW, "first"), scoped_registry.registry.address
    one = ProjectBuild(address, git, tmp_path, "one", scoped_registry.auth("crews"))
    two = ProjectBuild(address, git, tmp_path, "two", scoped_registry.auth("crews/two"))
    one.push(commit, two)
    assert two.assemble(commit)["outcome"] == "built"


def test_shared_image_that_only_a_tag_names_is_not_taken(
    registry: RunningRegistry, git: GitServer, demo: GitRepository, tmp_path: Path
) -> None:
    commit = demo.commit(CREW, "first")
    one, two = (ProjectBuild(registry.address, git, tmp_path, name) for name in ("one", "two"))
    key = one.push(commit)
    digest = shared(registry.address).digest(f"deps-{key}")
    assert digest is not None
    assert two.assemble(commit)["outcome"] == "dependencies"
    forged = shared(registry.address).image(digest)
    assert forged is not None
    shared(registry.address).push_image(replace(forged, manifest=forged.manifest + b" "), f"deps-{key}")
    two.proven["shared"][key] = digest
    assert two.assemble(commit)["dependencies_digest"] == digest
