"""Dependencies installed in a container of the base image: what its pods write and push."""

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from build.assemble import assemble
from build.errors import BuildRefused, InfrastructureError
from build.logs import BuildLog
from build.registry.push import push_dependencies
from build.settings import BuildSettings, read_settings
from build.workspace import write_workspace
from plan.keys import base_keys
from tests.testbed.git_server import GitServer, Repository

from .conftest import RunningRegistry, build_environment, kaniko_tarball, pull

BASES = {"3.11": "library/python:3.11-slim", "3.12": "library/python:3.12-slim"}
(BASE_KEY, OTHER_BASE_KEY) = base_keys(BASES)
CREW = {"main.py": "def kickoff(inputs):\n    return inputs\n", "requirements.txt": "langgraph==1.2.22\n"}


class Steps:
    """Runs the steps of builds of one project."""

    def __init__(self, registry: RunningRegistry, git: GitServer, directory: Path) -> None:
        self.registry, self.git, self.directory = registry, git, directory
        self.proven: dict[str, dict[str, str]] = {"dependencies": {}, "shared": {}}
        self.more: dict[str, Any] = {"install_in_base": True}
        self.runner = directory / "runner"
        self.runner.mkdir()

    def settings(self, commit: str, **dependencies: Any) -> BuildSettings:
        step = {"dependencies": dependencies} if dependencies else {"proven": self.proven}
        request = {"base_images": BASES, **step, **self.more}
        return read_settings(build_environment(self.registry.address, self.git, commit, **request))

    def assemble(self, commit: str) -> dict[str, Any]:
        return assemble(self.settings(commit), BuildLog(), self.runner)

    def make_base(self, commit: str) -> str:
        """Push an image without dependencies, as Kaniko makes it; return its digest."""
        image = self.directory / "image.tar"
        kaniko_tarball(image, {"etc/passwd": b"crew:x:65532:65532::/home/crew:/bin/sh\n"})
        digest = push_dependencies(self.settings(commit, key=BASE_KEY), BuildLog(), image)
        self.proven["dependencies"][BASE_KEY] = digest
        return digest

    def install(self, commit: str, content: dict[str, bytes]) -> str:
        """Push a layer of these files, as an installation writes it; return the digest of the image."""
        request = self.assemble(commit)
        layer = self.directory / "layer.tar"
        with tarfile.open(layer, "w") as tar:
            for name, data in content.items():
                header = tarfile.TarInfo(name)
                header.size = len(data)
                tar.addfile(header, io.BytesIO(data))
        key, base = request["dependencies_key"], request["base"]
        digest = push_dependencies(self.settings(commit, key=key, base=base), BuildLog(), layer)
        self.proven["dependencies"][key] = digest
        return digest


@pytest.fixture
def steps(registry: RunningRegistry, git: GitServer, tmp_path: Path) -> Steps:
    return Steps(registry, git, tmp_path)


def test_layer_of_an_installation_is_appended_to_its_base_image(steps: Steps, demo: Repository) -> None:
    commit = demo.commit(CREW, "first")
    base = pull(f"{steps.registry.address}/crews/demo@{steps.make_base(commit)}")
    big = b"x = 1\n" * 999_999
    digest = steps.install(commit, {"usr/lib/a.py": big, "usr/lib/.wh.b": b""})
    image = pull(f"{steps.registry.address}/crews/demo@{digest}")
    assert image.config["rootfs"]["diff_ids"][:-1] == base.config["rootfs"]["diff_ids"]
    assert image.config["config"] == base.config["config"]
    assert len(image.config["history"]) == len(base.config["history"]) + 1
    assert image.layers[-1].getnames() == ["usr/lib/a.py", "usr/lib/.wh.b"]
    file = image.layers[-1].extractfile("usr/lib/a.py")
    assert file is not None and file.read() == big
    built = steps.assemble(commit)
    assert (built["outcome"], built["dependencies_digest"]) == ("built", digest)
    names = [name for layer in pull(built["image"]).layers for name in layer.getnames()]
    assert {"etc/passwd", "usr/lib/a.py", "app/main.py"} <= set(names)


def test_base_image_is_proposed_where_no_dockerfile_is_needed(steps: Steps, demo: Repository) -> None:
    first = demo.commit(CREW, "first")
    assert steps.assemble(first)["base"] == {"key": BASE_KEY, "digest": ""}
    digest = steps.make_base(first)
    assert steps.assemble(first)["base"] == {"key": BASE_KEY, "digest": digest}
    newer = {"crew.toml": '[deployment]\npython = "3.12"\n'}
    other = demo.commit({**CREW, **newer}, "other Python")
    assert steps.assemble(other)["base"] == {"key": OTHER_BASE_KEY, "digest": ""}
    for name, more in {
        "Debian packages": {"crew.toml": '[build]\npackages = ["git"]\n'},
        "a Dockerfile": {
            "Dockerfile": "FROM python:3.11-slim\n",
            "crew.toml": '[build]\ndockerfile = "Dockerfile"\n',
        },
    }.items():
        needs_kaniko = steps.assemble(demo.commit({**CREW, **more}, name))
        assert needs_kaniko["outcome"] == "dependencies" and "base" not in needs_kaniko, name
    without = demo.commit({"main.py": CREW["main.py"], **newer}, "no dependencies")
    assert "base" not in steps.assemble(without)
    steps.more = {}
    assert "base" not in steps.assemble(first)


def test_shared_base_image_of_another_project_is_taken(steps: Steps, demo: Repository) -> None:
    commit = demo.commit(CREW, "first")
    digest = steps.make_base(commit)
    steps.proven = {"dependencies": {}, "shared": {BASE_KEY: digest}}
    assert steps.assemble(commit)["base"] == {"key": BASE_KEY, "digest": digest}
    # A proof of an image that the registry no longer has.
    steps.proven = {"dependencies": {}, "shared": {BASE_KEY: "sha256:" + "ab" * 32}}
    assert steps.assemble(commit)["base"] == {"key": BASE_KEY, "digest": ""}


def test_workspace_has_the_script_and_the_program_that_runs_it(steps: Steps, demo: Repository) -> None:
    commit = demo.commit(CREW, "first")
    key = steps.assemble(commit)["dependencies_key"]
    base = {"key": BASE_KEY, "digest": "sha256:" + "ab" * 32}
    workspace = steps.directory / "workspace"
    write_workspace(steps.settings(commit, key=key, base=base), BuildLog(), workspace)
    assert {path.name for path in workspace.iterdir()} == {"declared", "install.sh", "changed_files.py", "uv"}
    script = (workspace / "install.sh").read_text()
    assert (
        script.startswith("export HOME=/root") and "install -r /workspace/declared/requirements.txt" in script
    )
    by_kaniko = steps.directory / "by_kaniko"
    write_workspace(steps.settings(commit, key=key), BuildLog(), by_kaniko)
    assert f"RUN {script}" in (by_kaniko / "Dockerfile").read_text()


def test_workspace_of_a_base_image_needs_no_source(steps: Steps) -> None:
    workspace = steps.directory / "workspace"
    write_workspace(steps.settings("0" * 40, key=OTHER_BASE_KEY), BuildLog(), workspace)
    lines = (workspace / "Dockerfile").read_text().splitlines()
    assert lines[0] == f"FROM {BASES['3.12']}" and not any("install" in line for line in lines)
    assert [*(workspace / "context").iterdir()] == []


def test_image_above_its_limit_is_not_pushed(steps: Steps, demo: Repository) -> None:
    commit = demo.commit(CREW, "first")
    steps.make_base(commit)
    steps.more["image_bytes"] = 300
    with pytest.raises(BuildRefused, match="the image has"):
        steps.install(commit, {"a": b"a", "b": bytes(range(256)) * 9})


def test_a_link_in_place_of_the_layer_is_refused(steps: Steps, demo: Repository) -> None:
    commit = demo.commit(CREW, "first")
    base = {"key": BASE_KEY, "digest": steps.make_base(commit)}
    (steps.directory / "layer").symlink_to("/etc/passwd")
    with pytest.raises(InfrastructureError, match="cannot be used"):
        settings = steps.settings(commit, key="ab" * 32, base=base)
        push_dependencies(settings, BuildLog(), steps.directory / "layer")
