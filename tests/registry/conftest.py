"""Fixtures: a real registry, a real git server and a small dependency image."""

import base64
import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import zstandard

from build.image.manifest import DOCKER_MANIFEST, OCI_MANIFEST
from dev.registry import access, signing, token_server
from tests.testbed.git_server import GitServer, Repository
from tests.testbed.ports import free_port

# Hash of the password open-sesame.
_PASSWORD_HASH = "$2b$04$i1//bY6Ba8c4yUED.I5Z7.qsH1LLsQ2E6XI220arb8HqrxW.EN5de"


@dataclass(frozen=True)
class RunningRegistry:
    """A running registry: its `host:port` and its access log."""

    address: str
    log: Path

    def pushes(self) -> list[str]:
        """Return the request lines of writes so far."""
        text = self.log.read_text(errors="replace")
        return [line for line in text.splitlines() if '"PUT ' in line or '"POST ' in line]


def _start(
    directory: Path, extra_config: str = "", delete: bool = True
) -> tuple[subprocess.Popen[bytes], RunningRegistry]:
    port = free_port()
    address = f"127.0.0.1:{port}"
    configuration = directory / "registry.yml"
    deleting = f"{{enabled: {str(delete).lower()}}}"
    configuration.write_text(
        "version: 0.1\nlog: {level: info}\n"
        f"storage: {{filesystem: {{rootdirectory: {directory}/data}}, delete: {deleting}}}\n"
        f"http: {{addr: {address}}}\n{extra_config}"
    )
    log = directory / "registry.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["docker-registry", "serve", str(configuration)], stdout=output, stderr=subprocess.STDOUT
        )
    end = time.monotonic() + 180
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://{address}/v2/", timeout=1)
            break
        except urllib.error.HTTPError:
            break
        except OSError:
            time.sleep(0.05)
    else:
        process.kill()
        pytest.fail(f"the registry did not start: {log.read_text()}")
    return process, RunningRegistry(address, log)


@contextmanager
def _run_registry(directory: Path, extra_config: str = "", delete: bool = True) -> Iterator[RunningRegistry]:
    """Run a registry with its files in the new directory."""
    directory.mkdir()
    process, running = _start(directory, extra_config, delete)
    try:
        yield running
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[RunningRegistry]:
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed (Debian package docker-registry)")
    with _run_registry(tmp_path / "registry") as running:
        yield running


@pytest.fixture
def second_registry(tmp_path: Path) -> Iterator[RunningRegistry]:
    """A second, independent registry."""
    with _run_registry(tmp_path / "second") as running:
        yield running


@pytest.fixture
def registry_without_delete(tmp_path: Path) -> Iterator[RunningRegistry]:
    """A registry with deletion disabled, which is common."""
    with _run_registry(tmp_path / "undeletable", delete=False) as running:
        yield running


@pytest.fixture
def guarded_registry(tmp_path: Path) -> Iterator[RunningRegistry]:
    """A registry with basic authentication: user crew, password open-sesame."""
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed (Debian package docker-registry)")
    passwords = tmp_path / "htpasswd"
    passwords.write_text(f"crew:{_PASSWORD_HASH}\n")
    auth = f"auth: {{htpasswd: {{realm: test, path: {passwords}}}}}\n"
    with _run_registry(tmp_path / "guarded", auth) as running:
        yield running


@dataclass(frozen=True)
class ScopedRegistry:
    """A registry like the dev cluster's: anonymous pull; a credential may push below its own name."""

    registry: RunningRegistry
    key: str

    def auth(self, user: str) -> str:
        """Return the `.dockerconfigjson` of a user."""
        pair = f"{user}:{access.password(self.key, user)}"
        encoded = base64.b64encode(pair.encode()).decode()
        return json.dumps({"auths": {self.registry.address: {"auth": encoded}}})


@pytest.fixture
def scoped_registry(tmp_path: Path) -> Iterator[ScopedRegistry]:
    """A registry with a token service."""
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed (Debian package docker-registry)")
    certificate, key_file, key = tmp_path / "tokens.crt", tmp_path / "tokens.key", "k" * 64
    signing.make(certificate, key_file)
    issuer = token_server.TokenIssuer(key, signing.read(certificate, key_file))
    server = token_server.TokenHttpServer(("127.0.0.1", 0), issuer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    auth = {
        "token": {
            "realm": f"http://127.0.0.1:{server.server_address[1]}/token",
            "service": token_server.SERVICE,
            "issuer": token_server.ISSUER,
            "rootcertbundle": str(certificate),
        }
    }
    try:
        with _run_registry(tmp_path / "scoped", f"auth: {json.dumps(auth)}\n") as running:
            yield ScopedRegistry(running, key)
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def git(tmp_path: Path) -> Iterator[GitServer]:
    with GitServer(tmp_path / "git") as server:
        yield server


@pytest.fixture
def demo(git: GitServer) -> Repository:
    return git.create("demo")


def build_environment(address: str, git: GitServer, commit: str, **more: Any) -> dict[str, str]:
    """Return the variables of a build pod of the project demo; `more` is added to its request."""
    build = {
        "namespace": "crews",
        "project": "demo",
        "source": {"git": {"url": git.url("demo"), "commit": commit, "path": ""}},
        "registry": {"prefix": address, "insecure": True},
        "base_images": {"3.11": "library/python:3.11-slim"},
        "network": {"allow": ["127.0.0.0/8"], "deny": []},
        **more,
    }
    return {
        "CREWYARD_INTERNAL_URL": "http://127.0.0.1:9",
        "CREWYARD_DEPLOYMENT": "dep-one",
        "CREWYARD_TOKEN": "token",
        "CREWYARD_BUILD": json.dumps(build),
    }


def kaniko_tarball(path: Path, content: dict[str, bytes]) -> None:
    """Write an image file in the format of Kaniko's --tar-path: one compressed layer with `content`."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in content.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    packed = gzip.compress(plain.getvalue())
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": "2026-11-21T10:00:00Z",
            "config": {
                "Env": ["PATH=/usr/bin:/bin", "HOME=/home/crew"],
                "User": "65532:65532",
                "WorkingDir": "/app",
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{hashlib.sha256(plain.getvalue()).hexdigest()}"],
            },
            "history": [{"created": "2026-11-21T10:00:00Z", "created_by": "RUN pip install"}],
        }
    ).encode()
    config_name = f"sha256:{hashlib.sha256(config).hexdigest()}"
    layer_name = f"{hashlib.sha256(packed).hexdigest()}.tar.gz"
    index = json.dumps(
        [{"Config": config_name, "RepoTags": ["local/image"], "Layers": [layer_name]}]
    ).encode()
    with tarfile.open(path, "w") as archive:
        for name, data in ((config_name, config), (layer_name, packed), ("manifest.json", index)):
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))


@dataclass(frozen=True)
class PulledImage:
    """A pulled image: its configuration and the tars of its layers, lowest first."""

    config: dict[str, Any]
    layers: list[tarfile.TarFile]


def pull(reference: str) -> PulledImage:
    """Pull `host:port/repository@sha256:…` without the code under test; verify every digest."""
    name, _, digest = reference.partition("@")
    host, _, repository = name.partition("/")

    def fetch(collection: str, digest: str) -> bytes:
        accept = {"Accept": f"{DOCKER_MANIFEST}, {OCI_MANIFEST}"}
        request = urllib.request.Request(
            f"http://{host}/v2/{repository}/{collection}/{digest}", headers=accept
        )
        with urllib.request.urlopen(request, timeout=120) as response:
            data: bytes = response.read()
        assert f"sha256:{hashlib.sha256(data).hexdigest()}" == digest
        return data

    manifest = json.loads(fetch("manifests", digest))
    config = json.loads(fetch("blobs", manifest["config"]["digest"]))
    packed = [fetch("blobs", layer["digest"]) for layer in manifest["layers"]]
    assert [len(data) for data in packed] == [layer["size"] for layer in manifest["layers"]]
    plain = [
        zstandard.ZstdDecompressor().decompressobj().decompress(data)
        if layer["mediaType"].endswith("+zstd")
        else gzip.decompress(data)
        for layer, data in zip(manifest["layers"], packed, strict=True)
    ]
    assert [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in plain] == config["rootfs"]["diff_ids"]
    return PulledImage(config, [tarfile.open(fileobj=io.BytesIO(data)) for data in plain])
