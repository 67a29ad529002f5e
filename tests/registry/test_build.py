"""The build steps as pods run them, against a real registry and a real git server."""

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

from build.__main__ import patience
from build.errors import Infrastructure, Refused
from build.image.manifest import digest_of
from build.logs import Log
from build.registry.credential import Credential
from build.registry.push import push_dependencies
from build.registry.repository import Repository
from build.settings import Settings, read_settings
from build.workspace import write_workspace
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

from .conftest import Registry, kaniko_tarball, pull

CREW = {"main.py": "def kickoff(inputs):\n    return inputs\n", "requirements.txt": "langgraph==1.2.22\n"}


@pytest.fixture
def pod(registry: Registry, git: GitServer, tmp_path: Path) -> "Pod":
    runner = tmp_path / "runner"
    runner.mkdir()
    (runner / "__main__.py").write_text("print('the runner')\n")
    return Pod(registry, git, tmp_path, runner)


class Pod:
    """Runs single steps with the environment that the controller gives to build pods."""

    def __init__(self, registry: Registry, git: GitServer, place: Path, runner: Path) -> None:
        self.registry, self.git, self.place, self.runner = registry, git, place, runner
        self.said = io.StringIO()

    def environment(self, commit: str, key: str | None = None, deployment: str = "dep-one") -> dict[str, str]:
        build = {
            "namespace": "crews",
            "project": "demo",
            "deployment": deployment,
            "source": {"git": {"url": self.git.url("demo"), "commit": commit, "path": ""}},
            "crew": None,
            "registry": {"prefix": self.registry.address, "insecure": True},
            "base_images": {"3.11": "library/python:3.11-slim"},
            "network": {"allow": ["127.0.0.0/8"], "deny": []},
            "limits": {"context_bytes": 1 << 20, "unpacked_bytes": 1 << 20, "entries": 100, "ratio": 100},
            **({"dependencies": {"key": key}} if key else {}),
        }
        return {
            "CREWYARD_INTERNAL_URL": "http://127.0.0.1:9",
            "CREWYARD_DEPLOYMENT": deployment,
            "CREWYARD_TOKEN": "token",
            "CREWYARD_POD": "pod",
            "CREWYARD_BUILD": json.dumps(build),
        }

    def settings(self, commit: str, key: str | None = None, **more: str) -> Settings:
        return read_settings(self.environment(commit, key, **more))

    def assemble(self, commit: str, **more: str) -> dict[str, Any]:
        from build.assemble import assemble

        return assemble(self.settings(commit, **more), Log(out=self.said), self.runner)

    def make_dependencies(self, commit: str) -> str:
        """What the dependencies pod does, with a ready-made image in Kaniko's place; the key."""
        asked = self.assemble(commit)
        assert asked["outcome"] == "dependencies"
        key = str(asked["dependencies_key"])
        image = self.place / "image.tar"
        kaniko_tarball(
            image, {"etc/passwd": b"crew:x:65532:65532::/home/crew:/bin/sh\n", "big": os.urandom(1 << 20)}
        )
        push_dependencies(self.settings(commit, key), Log(), image)
        return key


def test_from_a_commit_to_an_image(pod: Pod, demo: GitRepository) -> None:
    sha = demo.commit({**CREW, "bin/tool": "#!/bin/sh\n"}, "first", executable=("bin/tool",))
    asked = pod.assemble(sha)
    assert asked["outcome"] == "dependencies"
    assert asked["plan"] == {
        "framework": "langgraph",
        "entrypoint": "main:kickoff",
        "python": "3.11",
        "envRequired": [],
    }
    assert (
        asked["dependencies_image"] == f"{pod.registry.address}/crews/demo:deps-{asked['dependencies_key']}"
    )

    context = pod.place / "workspace" / "context"
    write_workspace(pod.settings(sha, asked["dependencies_key"]), Log(), context.parent)
    assert (context / "requirements.txt").read_text() == "langgraph==1.2.22\n"
    assert (context / "Dockerfile").read_text().startswith("FROM library/python:3.11-slim\n")

    pod.make_dependencies(sha)
    built = pod.assemble(sha)
    assert built["outcome"] == "built"
    assert built["image"].startswith(f"{pod.registry.address}/crews/demo@sha256:")

    pulled = pull(built["image"])
    config = pulled.config
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["WorkingDir"] == "/app"
    assert "HOME=/home/crew" in config["config"]["Env"]
    assert config["config"]["Labels"]["org.opencontainers.image.revision"] == sha
    assert config["created"] == "1970-01-01T00:00:00Z"
    assert len(config["rootfs"]["diff_ids"]) == 3

    _, runner, code = pulled.layers
    assert _content(code, "app/main.py") == CREW["main.py"]
    assert code.getmember("app/main.py").mode == 0o644
    assert code.getmember("app/bin/tool").mode == 0o755
    assert _content(runner, "opt/crewyard/runner/__main__.py") == "print('the runner')\n"
    for entry in (*code, *runner):
        assert (entry.mtime, entry.uid, entry.gid) == (0, 0, 0)


def _content(layer: tarfile.TarFile, name: str) -> str:
    file = layer.extractfile(name)
    assert file is not None
    return file.read().decode()


def test_the_same_commit_twice_is_the_same_image_and_pushes_nothing(pod: Pod, demo: GitRepository) -> None:
    sha = demo.commit(CREW, "first")
    pod.make_dependencies(sha)
    first = pod.assemble(sha)
    before = pod.registry.pushes()
    assert pod.assemble(sha, deployment="dep-two") == first
    again = demo.commit({**CREW, "unused.txt": "x"}, "second")
    back = demo.commit(CREW, "third")
    assert again != back
    assert pod.assemble(back) == first
    assert pod.registry.pushes() == before
    assert pod.said.getvalue().count("nothing to push") == 2


def test_the_same_commit_in_another_registry_is_the_same_digest(
    pod: Pod, demo: GitRepository, second_registry: Registry
) -> None:
    sha = demo.commit(CREW, "first")
    pod.make_dependencies(sha)
    first = pod.assemble(sha)
    there = Pod(second_registry, pod.git, pod.place, pod.runner)
    push_dependencies(there.settings(sha, first["dependencies_key"]), Log(), pod.place / "image.tar")
    second = there.assemble(sha)
    assert second["image"].partition("@")[2] == first["image"].partition("@")[2]
    assert second["build_key"] == first["build_key"]


def test_what_is_excluded_neither_changes_the_build_nor_reaches_the_image(
    pod: Pod, demo: GitRepository
) -> None:
    crew = {**CREW, "crew.toml": '[build]\nexclude = ["tests", "*.md"]\n'}
    sha = demo.commit({**crew, "tests/test_x.py": "1", "README.md": "one"}, "first")
    pod.make_dependencies(sha)
    first = pod.assemble(sha)
    names = pull(first["image"]).layers[-1].getnames()
    assert names == ["app/crew.toml", "app/main.py", "app/requirements.txt"]
    second = pod.assemble(demo.commit({**crew, "tests/test_x.py": "2", "README.md": "two"}, "second"))
    assert second == first


def test_a_project_that_is_installed_goes_to_the_builder_as_it_is(pod: Pod, demo: GitRepository) -> None:
    crew = {
        "crew.toml": '[deployment]\nentrypoint = "pkg.crew:go"\n[build]\nexclude = ["notes"]\n',
        "lib/pkg/crew.py": "def go(): ...\n",
        "setup.cfg": "[metadata]\nname = pkg\n",
        "notes/x": "",
    }
    sha = demo.commit(crew, "first")
    asked = pod.assemble(sha)
    workspace = pod.place / "workspace"
    write_workspace(pod.settings(sha, asked["dependencies_key"]), Log(), workspace)
    assert "--compile /workspace/tree\n" in (workspace / "context" / "Dockerfile").read_text()
    tree = workspace / "tree"
    assert sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()) == [
        "crew.toml",
        "lib/pkg/crew.py",
        "pyproject.toml",
        "setup.cfg",
    ]
    changed = demo.commit({**crew, "lib/pkg/crew.py": "def go(): return 1\n"}, "second")
    assert pod.assemble(changed)["dependencies_key"] != asked["dependencies_key"]


def test_a_change_of_code_sends_one_small_layer(pod: Pod, demo: GitRepository) -> None:
    pod.make_dependencies(demo.commit(CREW, "first"))
    first = pod.assemble(demo.head())
    before = pod.registry.pushes()
    second = pod.assemble(demo.commit({**CREW, "main.py": "def kickoff(inputs):\n    return 2\n"}, "second"))
    sent = [line for line in pod.registry.pushes()[len(before) :] if '"PUT ' in line]
    assert second["image"] != first["image"]
    assert second["dependencies_key"] == first["dependencies_key"]
    assert len([line for line in sent if "/blobs/" in line]) == 2  # the code and the configuration
    assert len([line for line in sent if "/manifests/" in line]) == 1


def test_a_comment_in_the_requirements_keeps_the_dependencies(pod: Pod, demo: GitRepository) -> None:
    key = pod.make_dependencies(demo.commit(CREW, "first"))
    commented = {**CREW, "requirements.txt": "# pinned\nlanggraph==1.2.22  # the graph\n"}
    assert pod.assemble(demo.commit(commented, "second"))["dependencies_key"] == key


def test_the_crews_own_artifacts_directory_stays_out(pod: Pod, demo: GitRepository) -> None:
    sha = demo.commit({**CREW, "artifacts/old.md": "old"}, "first")
    pod.make_dependencies(sha)
    built = pod.assemble(sha)
    assert pull(built["image"]).layers[-1].getnames() == ["app/main.py", "app/requirements.txt"]


def test_the_command_writes_its_last_words(pod: Pod, demo: GitRepository, tmp_path: Path) -> None:
    sha = demo.commit({**CREW, "crew.toml": '[deployment]\nentrypoint = "main:gone"\n'}, "first")
    words = tmp_path / "termination"
    done = subprocess.run(
        [sys.executable, "-m", "build", "assemble"],
        env={**os.environ, **pod.environment(sha), "CREWYARD_TERMINATION": str(words)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(words.read_text())
    assert said["outcome"] == "failed"
    assert said["reason"] == "EntrypointNotFound"
    assert "main.py binds no 'gone'" in said["message"]
    assert "crew.toml line 2" in said["message"]
    assert b"EntrypointNotFound" in done.stdout


def test_a_registry_that_is_away_is_no_answer(pod: Pod, demo: GitRepository) -> None:
    repository = Repository("127.0.0.1:9/crews/demo", insecure=True)
    with pytest.raises(Infrastructure, match=r"127\.0\.0\.1:9/crews/demo"):
        repository.image("deps-x")


def test_a_registry_with_a_password(guarded_registry: Registry, tmp_path: Path) -> None:
    name = f"{guarded_registry.address}/crews/demo"
    auth = json.dumps({"auths": {guarded_registry.address: {"username": "crew", "password": "open-sesame"}}})
    data = b"some bytes"
    right = Credential(auth, "tides-push")
    assert Repository(name, True, right).push_blob(io.BytesIO(data), len(data), digest_of(data)) is True
    assert Repository(name, True, right).has_blob(digest_of(data))
    with pytest.raises(Refused) as refused:
        wrong = Credential(auth.replace("sesame", "barley"), "tides-push")
        Repository(name, True, wrong).has_blob(digest_of(data))
    assert refused.value.reason == "RegistryPush" and "tides-push" in refused.value.hint
    with pytest.raises(Refused):
        Repository(name, True).has_blob(digest_of(data))


def test_an_image_file_that_is_a_link_is_not_followed(pod: Pod, demo: GitRepository, tmp_path: Path) -> None:
    link = tmp_path / "image.tar"
    link.symlink_to("/proc/self/environ")
    with pytest.raises(Infrastructure, match="cannot be read"):
        push_dependencies(pod.settings(demo.commit(CREW, "first"), "key"), Log(), link)


def test_a_step_that_hangs_says_where_and_ends(pod: Pod) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        build = json.loads(pod.environment("0" * 40)["CREWYARD_BUILD"])
        # Of which it may hang for two thirds: enough to get as far as the fetch on a busy machine too.
        build["seconds"] = 22.5
        build["source"]["git"]["url"] = f"http://127.0.0.1:{silent.getsockname()[1]}/demo.git"
        program = "import build.__main__ as step; step.process(['assemble'])"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **pod.environment("0" * 40), "CREWYARD_BUILD": json.dumps(build)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 1 and "fetch_commit" in done.stderr


def test_a_client_that_cannot_be_loaded_in_time_is_no_answer(
    pod: Pod, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    monkeypatch.setattr("build.registry.repository._import_client", held.wait)
    monkeypatch.setattr("build.registry.repository._IMPORT_SECONDS", 0.01)
    repository = Repository(f"{pod.registry.address}/crews/demo", True)
    repository.prepare()
    with pytest.raises(Infrastructure, match="was not loaded"):
        repository.digest("latest")
    held.set()


def test_a_step_whose_import_is_under_way_ends_at_once(pod: Pod, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "build", "assemble"],
        env={
            **os.environ,
            **pod.environment("no commit"),
            "CREWYARD_TERMINATION": str(tmp_path / "words"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0 and json.loads((tmp_path / "words").read_text())["reason"] == "GitNotFound"
    assert "GitNotFound" in done.stdout


@pytest.mark.parametrize(
    ("build", "seconds"),
    [
        ('{"seconds": 1800}', 1200),
        ('{"seconds": 60}', 40),
        ("{}", 1200),
        ('{"seconds": null}', 1200),
        ("[", 1200),
    ],
)
def test_a_step_is_taken_to_hang_before_its_pod_ends(build: str, seconds: float) -> None:
    assert patience({"CREWYARD_BUILD": build}) == seconds
    assert patience({}) == 1200
