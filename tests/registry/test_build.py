"""Build steps as pods run them, against a real registry and a real git server."""

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from build.__main__ import hang_timeout, run
from build.errors import BuildRefused, InfrastructureError
from build.image.manifest import digest_of
from build.logs import BuildLog
from build.registry.credential import RegistryCredential
from build.registry.push import push_dependencies
from build.registry.repository import ImageRepository
from build.settings import BuildSettings, read_settings
from build.workspace import write_workspace
from plan.errors import PlanError
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

from .conftest import RunningRegistry, build_environment, kaniko_tarball, pull

CREW = {"main.py": "def kickoff(inputs):\n    return inputs\n", "requirements.txt": "langgraph==1.2.22\n"}


@pytest.fixture
def pod(registry: RunningRegistry, git: GitServer, tmp_path: Path) -> "StepRunner":
    runner = tmp_path / "runner"
    runner.mkdir()
    (runner / "__main__.py").write_text("print('the runner')\n")
    return StepRunner(registry, git, tmp_path, runner)


class StepRunner:
    """Runs single steps with the environment of build pods."""

    def __init__(self, registry: RunningRegistry, git: GitServer, directory: Path, runner: Path) -> None:
        self.registry, self.git, self.directory, self.runner = registry, git, directory, runner
        self.output = io.StringIO()
        self.image_bytes = 0
        self.proven: dict[str, dict[str, Any]] = {"images": {}, "dependencies": {}, "shared": {}}

    def environment(self, commit: str, key: str | None = None, deployment: str = "dep-one") -> dict[str, str]:
        request = {
            "deployment": deployment,
            "crew": None,
            "limits": {"context_bytes": 1 << 20, "unpacked_bytes": 1 << 20, "entries": 100, "ratio": 100},
            "image_bytes": self.image_bytes,
            **({"dependencies": {"key": key}} if key else {"proven": self.proven}),
        }
        variables = build_environment(self.registry.address, self.git, commit, **request)
        return {**variables, "CREWYARD_DEPLOYMENT": deployment, "CREWYARD_POD": "pod"}

    def settings(self, commit: str, key: str | None = None, **more: str) -> BuildSettings:
        return read_settings(self.environment(commit, key, **more))

    def assemble(self, commit: str, **more: str) -> dict[str, Any]:
        from build.assemble import assemble

        result = assemble(self.settings(commit, **more), BuildLog(out=self.output), self.runner)
        # Two builds of the same differ in nothing else.
        assert {"fetch", "plan"} <= set(result.pop("seconds"))
        if result["outcome"] == "built":
            # As the controller proves it.
            image, dependencies = result["image"].partition("@")[2], result["dependencies_digest"]
            self.proven["images"][result["build_key"]] = {"image": image, "dependencies": dependencies}
        return result

    def make_dependencies(self, commit: str) -> str:
        """Do the work of the dependencies pod with a prebuilt image; return the key."""
        key, image = self.install_dependencies(commit)
        digest = push_dependencies(self.settings(commit, key), BuildLog(), image)
        self.proven["dependencies"][key] = digest
        return key

    def install_dependencies(self, commit: str) -> tuple[str, Path]:
        """Return the key of the missing dependencies, and an image file as Kaniko writes it."""
        request = self.assemble(commit)
        assert request["outcome"] == "dependencies"
        image = self.directory / "image.tar"
        kaniko_tarball(
            image, {"etc/passwd": b"crew:x:65532:65532::/home/crew:/bin/sh\n", "big": os.urandom(1 << 20)}
        )
        return str(request["dependencies_key"]), image

    def push(self, commit: str, key: str, image: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        """Run the container `push` as build.__main__ does."""
        monkeypatch.setattr("build.registry.push.push_dependencies", partial(push_dependencies, path=image))
        monkeypatch.setattr("build.image.runner_files.RUNNER", self.runner)
        result, code = run("push", self.settings(commit, key), BuildLog(out=self.output))
        assert code == 0
        return result


def test_from_a_commit_to_an_image(pod: StepRunner, demo: GitRepository) -> None:
    sha = demo.commit({**CREW, "bin/tool": "#!/bin/sh\n"}, "first", executable=("bin/tool",))
    request = pod.assemble(sha)
    assert request["outcome"] == "dependencies"
    assert request["plan"] == {
        "framework": "langgraph",
        "entrypoint": "main:kickoff",
        "python": "3.11",
        "envRequired": [],
    }
    assert (
        request["dependencies_image"]
        == f"{pod.registry.address}/crews/demo:deps-{request['dependencies_key']}"
    )

    workspace = pod.directory / "workspace"
    write_workspace(pod.settings(sha, request["dependencies_key"]), BuildLog(), workspace)
    assert (workspace / "declared" / "requirements.txt").read_text() == "langgraph==1.2.22\n"
    assert (workspace / "Dockerfile").read_text().startswith("FROM library/python:3.11-slim\n")
    assert not list((workspace / "context").iterdir())

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
    # The crew may change its own files, but not the runner.
    for layer, owner in ((code, 65532), (runner, 0)):
        for entry in layer:
            assert (entry.mtime, entry.uid, entry.gid) == (0, owner, owner), entry.name


def test_keys_without_effect_are_in_the_build_log(pod: StepRunner, demo: GitRepository) -> None:
    pod.assemble(demo.commit({**CREW, "crewship.toml": '[deployment]\nregion = "eu"\n'}, "first"))
    assert "note: crewship.toml: ignored keys: deployment.region" in pod.output.getvalue()


def test_pod_that_pushes_dependencies_assembles_the_image(
    pod: StepRunner, demo: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = demo.commit(CREW, "first")
    key, image = pod.install_dependencies(sha)
    result = pod.push(sha, key, image, monkeypatch)
    assert {"fetch", "plan", "assemble"} == set(result.pop("seconds"))
    assert result["outcome"] == "built" and pull(result["image"])
    pod.proven["dependencies"][key] = result["dependencies_digest"]
    assert pod.assemble(sha) == result


def test_dependencies_are_pushed_where_the_image_cannot_be_assembled(
    pod: StepRunner, demo: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = demo.commit(CREW, "first")
    key, image = pod.install_dependencies(sha)
    result = pod.push("0" * 40, key, image, monkeypatch)
    digest = result.pop("digest")
    assert result == {"outcome": "pushed", "key": key}
    assert "0" * 40 in pod.output.getvalue()
    pod.proven["dependencies"][key] = digest
    assert pod.assemble(sha)["outcome"] == "built"


def test_image_above_the_limit_is_not_pushed(
    pod: StepRunner, demo: GitRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = demo.commit({**CREW, "data.bin": os.urandom(200_000).hex()}, "first")
    key, image = pod.install_dependencies(sha)
    dependencies = image.stat().st_size
    repository = ImageRepository(f"{pod.registry.address}/crews/demo", True, RegistryCredential("", ""))
    pod.image_bytes = dependencies // 2
    with pytest.raises(BuildRefused, match=r"the image has .* bytes, more than") as refused:
        push_dependencies(pod.settings(sha, key), BuildLog(), image)
    assert refused.value.reason == "RegistryPush" and "image_bytes" in str(refused.value.hint)
    assert repository.digest(f"deps-{key}") is None
    # With the source it has more.
    pod.image_bytes = dependencies
    pod.proven["dependencies"][key] = push_dependencies(pod.settings(sha, key), BuildLog(), image)
    with pytest.raises(BuildRefused, match=f"more than {dependencies}"):
        pod.assemble(sha)
    pod.image_bytes = 0
    assert pod.assemble(sha)["outcome"] == "built"


def _content(layer: tarfile.TarFile, name: str) -> str:
    file = layer.extractfile(name)
    assert file is not None
    return file.read().decode()


def test_second_build_of_a_commit_pushes_nothing(pod: StepRunner, demo: GitRepository) -> None:
    sha = demo.commit(CREW, "first")
    pod.make_dependencies(sha)
    first = pod.assemble(sha)
    before = pod.registry.pushes()
    assert pod.assemble(sha, deployment="dep-two") == first
    again = demo.commit({**CREW, "unused.txt": "x"}, "second")
    back = demo.commit(CREW, "third")
    assert again != back
    assert pod.assemble(back) == {**first, "message": "third"}
    assert pod.registry.pushes() == before
    assert pod.output.getvalue().count("nothing to push") == 2


def test_images_that_only_a_tag_names_are_not_taken(pod: StepRunner, demo: GitRepository) -> None:
    """An account that may push to the repository may move its tags; no build takes what they name."""
    sha = demo.commit(CREW, "first")
    key = pod.make_dependencies(sha)
    honest = pod.assemble(sha)
    repository = ImageRepository(honest["image"].partition("@")[0], insecure=True)
    forged = repository.image(honest["image"].partition("@")[2])
    assert forged is not None
    forged = replace(forged, manifest=forged.manifest + b" ")
    for tag in (f"build-{honest['build_key']}", f"deps-{key}"):
        assert repository.push_image(forged, tag) == forged.digest
    # A tag and no proof: built again, from the dependency image with a proof.
    pod.proven["images"].clear()
    assert pod.assemble(sha) == honest
    assert repository.digest(f"build-{honest['build_key']}") == honest["image"].partition("@")[2]
    # A proof of an image that the registry no longer has.
    repository.delete(honest["image"].partition("@")[2])
    assert pod.assemble(sha) == honest
    pod.proven["images"].clear()
    pod.proven["dependencies"].clear()
    assert pod.assemble(sha)["outcome"] == "dependencies"


def test_digest_is_the_same_in_another_registry(
    pod: StepRunner, demo: GitRepository, second_registry: RunningRegistry
) -> None:
    sha = demo.commit(CREW, "first")
    pod.make_dependencies(sha)
    first = pod.assemble(sha)
    other = StepRunner(second_registry, pod.git, pod.directory, pod.runner)
    key = first["dependencies_key"]
    digest = push_dependencies(other.settings(sha, key), BuildLog(), pod.directory / "image.tar")
    other.proven["dependencies"][key] = digest
    second = other.assemble(sha)
    assert second["image"].partition("@")[2] == first["image"].partition("@")[2]
    assert second["build_key"] == first["build_key"]


def test_excluded_files_do_not_affect_the_image(pod: StepRunner, demo: GitRepository) -> None:
    crew = {**CREW, "crew.toml": '[build]\nexclude = ["tests", "*.md"]\n'}
    sha = demo.commit({**crew, "tests/test_x.py": "1", "README.md": "one"}, "first")
    pod.make_dependencies(sha)
    first = pod.assemble(sha)
    names = pull(first["image"]).layers[-1].getnames()
    assert names == ["app/crew.toml", "app/main.py", "app/requirements.txt"]
    second = pod.assemble(demo.commit({**crew, "tests/test_x.py": "2", "README.md": "two"}, "second"))
    assert second == {**first, "message": "second"}


def test_installed_project_is_written_for_the_builder(pod: StepRunner, demo: GitRepository) -> None:
    crew = {
        "crew.toml": '[deployment]\nentrypoint = "pkg.crew:go"\n[build]\nexclude = ["notes"]\n',
        "lib/pkg/crew.py": "def go(): ...\n",
        "setup.cfg": "[metadata]\nname = pkg\n",
        "notes/x": "",
    }
    sha = demo.commit(crew, "first")
    request = pod.assemble(sha)
    workspace = pod.directory / "workspace"
    write_workspace(pod.settings(sha, request["dependencies_key"]), BuildLog(), workspace)
    assert "    install /workspace/tree\n" in (workspace / "Dockerfile").read_text()
    tree = workspace / "tree"
    assert sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()) == [
        "crew.toml",
        "lib/pkg/crew.py",
        "pyproject.toml",
        "setup.cfg",
    ]
    changed = demo.commit({**crew, "lib/pkg/crew.py": "def go(): return 1\n"}, "second")
    assert pod.assemble(changed)["dependencies_key"] != request["dependencies_key"]


def test_context_of_an_own_dockerfile_is_what_it_copies(pod: StepRunner, demo: GitRepository) -> None:
    crew = {
        "crew.toml": '[build]\ndockerfile = "docker/Dockerfile"\nexclude = ["docker"]\n',
        "docker/Dockerfile": "FROM library/python:3.11-slim\nCOPY data bin/tool /srv/\n",
        "main.py": CREW["main.py"],
        "data/a": "one",
        "bin/tool": "#!/bin/sh\n",
        ".dockerignore": "*.md\n",
    }
    sha = demo.commit(crew, "first", executable=("bin/tool",))
    request = pod.assemble(sha)
    assert request["outcome"] == "dependencies" and request["plan"]["dockerfile"] == "docker/Dockerfile"
    workspace = pod.directory / "workspace"
    write_workspace(pod.settings(sha, request["dependencies_key"]), BuildLog(), workspace)
    context = workspace / "context"
    files = {path.relative_to(context).as_posix() for path in context.rglob("*") if path.is_file()}
    assert files == {"data/a", "bin/tool", ".dockerignore"}
    assert os.access(context / "bin/tool", os.X_OK) and not os.access(context / "data/a", os.X_OK)
    assert "COPY data bin/tool /srv/\n" in (workspace / "Dockerfile").read_text()

    def key(**changed: str) -> str:
        files = {**crew, **{name.replace("__", "/"): text for name, text in changed.items()}}
        commit = demo.commit(files, "next", executable=("bin/tool",))
        return str(pod.assemble(commit)["dependencies_key"])

    assert key(data__a="two") != request["dependencies_key"]
    assert key(docker__Dockerfile="FROM library/python:3.11-slim\n") != request["dependencies_key"]
    assert key(**{"main.py": "def kickoff(): ...\n"}) == request["dependencies_key"]


def test_image_of_another_project_is_no_base(pod: StepRunner, demo: GitRepository) -> None:
    crew = {**CREW, "crew.toml": '[build]\ndockerfile = "Dockerfile"\n'}
    for image in (f"{pod.registry.address}/crews/other:deps-1", "ghcr.io/acme/base"):
        sha = demo.commit({**crew, "Dockerfile": f"FROM {image}\n"}, image)
        with pytest.raises(PlanError) as raised:
            pod.assemble(sha)
        assert f"does not allow the image {image}" in raised.value.message


def test_code_change_pushes_one_small_layer(pod: StepRunner, demo: GitRepository) -> None:
    pod.make_dependencies(demo.commit(CREW, "first"))
    first = pod.assemble(demo.head())
    before = pod.registry.pushes()
    second = pod.assemble(demo.commit({**CREW, "main.py": "def kickoff(inputs):\n    return 2\n"}, "second"))
    sent = [line for line in pod.registry.pushes()[len(before) :] if '"PUT ' in line]
    assert second["image"] != first["image"]
    assert second["dependencies_key"] == first["dependencies_key"]
    assert len([line for line in sent if "/blobs/" in line]) == 2  # the code and the configuration
    assert len([line for line in sent if "/manifests/" in line]) == 1


def test_comment_in_requirements_keeps_the_dependencies(pod: StepRunner, demo: GitRepository) -> None:
    key = pod.make_dependencies(demo.commit(CREW, "first"))
    commented = {**CREW, "requirements.txt": "# pinned\nlanggraph==1.2.22  # the graph\n"}
    assert pod.assemble(demo.commit(commented, "second"))["dependencies_key"] == key


def test_artifacts_directory_is_excluded(pod: StepRunner, demo: GitRepository) -> None:
    sha = demo.commit({**CREW, "artifacts/old.md": "old"}, "first")
    pod.make_dependencies(sha)
    built = pod.assemble(sha)
    assert pull(built["image"]).layers[-1].getnames() == ["app/main.py", "app/requirements.txt"]


def test_command_writes_the_termination_message(pod: StepRunner, demo: GitRepository, tmp_path: Path) -> None:
    sha = demo.commit({**CREW, "crew.toml": '[deployment]\nentrypoint = "main:gone"\n'}, "first")
    termination = tmp_path / "termination"
    done = subprocess.run(
        [sys.executable, "-m", "build", "assemble"],
        env={**os.environ, **pod.environment(sha), "CREWYARD_TERMINATION": str(termination)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    message = json.loads(termination.read_text())
    assert message["outcome"] == "failed"
    assert message["reason"] == "EntrypointNotFound"
    assert "main.py does not define 'gone'" in message["message"]
    assert "crew.toml line 2" in message["message"]
    assert b"EntrypointNotFound" in done.stdout


def test_unreachable_registry_is_an_infrastructure_error(pod: StepRunner, demo: GitRepository) -> None:
    repository = ImageRepository("127.0.0.1:9/crews/demo", insecure=True)
    with pytest.raises(InfrastructureError, match=r"127\.0\.0\.1:9/crews/demo"):
        repository.image("deps-x")


def test_basic_authentication(guarded_registry: RunningRegistry, tmp_path: Path) -> None:
    name = f"{guarded_registry.address}/crews/demo"
    auth = json.dumps({"auths": {guarded_registry.address: {"username": "crew", "password": "open-sesame"}}})
    data = b"some bytes"
    right = RegistryCredential(auth, "tides-push")
    assert ImageRepository(name, True, right).push_blob(io.BytesIO(data), len(data), digest_of(data)) is True
    assert ImageRepository(name, True, right).has_blob(digest_of(data))
    with pytest.raises(BuildRefused) as refused:
        wrong = RegistryCredential(auth.replace("sesame", "barley"), "tides-push")
        ImageRepository(name, True, wrong).has_blob(digest_of(data))
    assert refused.value.reason == "RegistryPush" and "tides-push" in refused.value.hint
    with pytest.raises(BuildRefused):
        ImageRepository(name, True).has_blob(digest_of(data))


def test_linked_image_file_is_not_followed(pod: StepRunner, demo: GitRepository, tmp_path: Path) -> None:
    link = tmp_path / "image.tar"
    link.symlink_to("/proc/self/environ")
    with pytest.raises(InfrastructureError, match="cannot be read"):
        push_dependencies(pod.settings(demo.commit(CREW, "first"), "key"), BuildLog(), link)


def test_hanging_step_dumps_its_stacks_and_exits(pod: StepRunner) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        build = json.loads(pod.environment("0" * 40)["CREWYARD_BUILD"])
        # Two thirds of this are enough to reach the fetch, also on a busy machine.
        build["seconds"] = 22.5
        build["source"]["git"]["url"] = f"http://127.0.0.1:{silent.getsockname()[1]}/demo.git"
        program = "import build.__main__ as step; step.run_and_exit(['assemble'])"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **pod.environment("0" * 40), "CREWYARD_BUILD": json.dumps(build)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert done.returncode == 1 and "fetch_commit" in done.stderr


def test_slow_import_of_the_client_is_an_infrastructure_error(
    pod: StepRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr("build.registry.repository._import_client", release.wait)
    monkeypatch.setattr("build.registry.repository._IMPORT_TIMEOUT_SECONDS", 0.01)
    repository = ImageRepository(f"{pod.registry.address}/crews/demo", True)
    repository.prepare()
    with pytest.raises(InfrastructureError, match="was not imported"):
        repository.digest("latest")
    release.set()


def test_step_exits_without_waiting_for_an_import(pod: StepRunner, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "build", "assemble"],
        env={
            **os.environ,
            **pod.environment("no commit"),
            "CREWYARD_TERMINATION": str(tmp_path / "termination"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (
        done.returncode == 0 and json.loads((tmp_path / "termination").read_text())["reason"] == "GitNotFound"
    )
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
def test_hang_timeout(build: str, seconds: float) -> None:
    assert hang_timeout({"CREWYARD_BUILD": build}) == seconds
    assert hang_timeout({}) == 1200
