"""Build pods: settings, log, termination message, image configuration."""

import io
import json
import threading
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.api_client import InternalApiClient
from build.assemble import _labels
from build.errors import BuildRefused
from build.image.layers import LayerFile, make_layer
from build.image.manifest import (
    DOCKER_MANIFEST,
    OCI_MANIFEST,
    ImageInvalid,
    ImageManifest,
    PushedLayer,
    append_layers,
    image_of_layers,
)
from build.json_object import BuildSettingsInvalid
from build.logs import BuildLog, api_sender
from build.registry.credential import RegistryCredential
from build.settings import ArchiveSource, GitSource, SourceLimits, read_settings
from build.source.tree import TreeBuilder
from build.termination import termination_message
from plan.errors import PlanError
from plan.make import make_plan

BUILD: dict[str, Any] = {
    "namespace": "crews",
    "project": "demo",
    "deployment": "dep-a",
    "source": {"git": {"url": "https://git.example.org/x", "commit": "c" * 40, "path": ""}},
    "crew": None,
    "registry": {"prefix": "registry:5000/", "insecure": True},
    "base_images": {"3.12": "b", "3.11": "a"},
    "network": {"allow": ["10.0.0.0/8"], "deny": []},
    "limits": {"context_bytes": 5, "entries": 7},
}


def environment(build: object = BUILD) -> dict[str, str]:
    return {
        "CREWYARD_INTERNAL_URL": "http://api:8080/",
        "CREWYARD_DEPLOYMENT": "dep-a",
        "CREWYARD_TOKEN": "very-secret",
        "CREWYARD_BUILD": build if isinstance(build, str) else json.dumps(build),
        "GIT_PASSWORD": "very-secret",
        "GIT_IDENTITY": "very-secret",
        "REGISTRY_AUTH": "very-secret",
    }


class TestSettings:
    def test_all_settings(self) -> None:
        settings = read_settings(environment())
        assert settings.repository == "registry:5000/crews/demo"
        assert settings.internal_url == "http://api:8080"
        assert settings.source == GitSource("https://git.example.org/x", "c" * 40, "")
        assert list(settings.base_images) == ["3.12", "3.11"]
        assert (settings.limits.context_bytes, settings.limits.entries, settings.limits.ratio) == (5, 7, 100)
        assert settings.dependencies_key is None

    def test_upload(self) -> None:
        source = {"archive": {"upload": "upl_1", "sha256": "a" * 64}}
        assert read_settings(environment({**BUILD, "source": source})).source == ArchiveSource(
            "upl_1", "a" * 64
        )

    def test_repr_hides_secrets(self) -> None:
        assert "very-secret" not in repr(read_settings(environment()))

    @pytest.mark.parametrize(
        ("build", "part"),
        [
            ("{", "not JSON"),
            ("[]", "must be a JSON object"),
            ({**BUILD, "project": ""}, "CREWYARD_BUILD.project"),
            ({**BUILD, "registry": {}}, "CREWYARD_BUILD.registry.prefix"),
            ({**BUILD, "source": {"git": {"url": "x"}}}, "CREWYARD_BUILD.source.git.commit"),
            ({**BUILD, "source": {}}, "CREWYARD_BUILD.source.archive"),
        ],
    )
    def test_error_names_the_missing_key(self, build: object, part: str) -> None:
        with pytest.raises(BuildSettingsInvalid, match=part.replace(".", r"\.")):
            read_settings(environment(build))


class TestTermination:
    @settings(deadline=None)
    @given(st.text(max_size=6000), st.text(max_size=6000))
    def test_message_is_json_within_the_limit(self, message: str, hint: str) -> None:
        result = {"outcome": "failed", "reason": "ConfigInvalid", "message": message, "hint": hint}
        text = termination_message(result)
        assert len(text.encode()) <= 4096
        assert json.loads(text)["reason"] == "ConfigInvalid"

    @settings(deadline=None)
    @given(st.text(max_size=5000), st.text(max_size=3000))
    def test_log_is_truncated_before_the_message(self, log: str, message: str) -> None:
        text = termination_message({"reason": "X", "message": message, "log": log})
        assert len(text.encode()) <= 4096
        kept = json.loads(text)
        if kept["message"] != message:
            assert kept["log"] == ""
        assert log.endswith(kept["log"].removeprefix("…"))

    def test_short_message_is_unchanged(self) -> None:
        result = {"outcome": "built", "image": "x@sha256:1", "message": "é" * 100}
        assert json.loads(termination_message(result)) == result

    def test_start_of_a_long_message_remains(self) -> None:
        text = termination_message({"message": "begin " + "\n" * 9000, "hint": "do it"})
        assert json.loads(text)["message"].startswith("begin ")
        assert json.loads(text)["hint"] == "do it"


class TestLog:
    def test_chunks_are_numbered_without_gaps_and_complete(self) -> None:
        sent: list[tuple[int, str]] = []
        log = BuildLog(lambda number, text: sent.append((number, text)) is None, io.StringIO())
        lines = [f"line {number}" for number in range(5000)]
        for line in lines:
            log.line(line)
        log.close()
        assert [number for number, _ in sent] == list(range(1, len(sent) + 1))
        assert "".join(text for _, text in sent).splitlines() == lines

    def test_chunk_is_retried(self) -> None:
        calls: list[tuple[int, str]] = []

        def send(number: int, text: str) -> bool:
            calls.append((number, text))
            return len(calls) > 2

        log = BuildLog(send, io.StringIO())
        log.line("once")
        log.close()
        assert calls == [(1, "once\n")] * 3

    def test_unavailable_api_loses_only_the_oldest_lines(self) -> None:
        available = threading.Event()
        sent: list[str] = []

        def send(number: int, text: str) -> bool:
            if available.is_set():
                sent.append(text)
            return available.is_set()

        out = io.StringIO()
        log = BuildLog(send, out)
        for number in range(3000):
            log.line(f"{number} {'x' * 1000}")
        available.set()
        log.close(10)
        text = "".join(sent)
        assert "lines were lost while the API was unavailable]" in text
        assert text.splitlines()[-1].startswith("2999 ")
        assert len(text) < 1_300_000
        assert len(out.getvalue().splitlines()) == 3000

    def test_unreachable_api_does_not_delay_the_exit(self) -> None:
        sender = api_sender(
            InternalApiClient("http://127.0.0.1:9", "token", timeout=1), "dep-a", "pod", "assemble"
        )
        log = BuildLog(sender, io.StringIO())
        log.line("hello")
        log.close(timeout=0.3)

    def test_control_characters_are_replaced(self) -> None:
        out = io.StringIO()
        BuildLog(None, out).line("a\r\nb\x1b[31m\u2028c")
        assert out.getvalue() == "a\ufffd\ufffdb\ufffd[31m\ufffdc\n"


def base(media_type: str = DOCKER_MANIFEST) -> ImageManifest:
    config = json.dumps(
        {"config": {"Env": ["A=1"], "User": "0"}, "rootfs": {"diff_ids": ["sha256:1"]}}
    ).encode()
    image = image_of_layers(config, [PushedLayer("sha256:2", 10)])
    return ImageManifest(media_type, image.manifest, config)


def test_an_image_without_zstd_keeps_dockers_format() -> None:
    image = image_of_layers(b"{}", [PushedLayer("sha256:1", 10)])
    assert image.media_type == DOCKER_MANIFEST and b"vnd.oci" not in image.manifest


def test_the_manifest_tells_the_compression_of_each_layer() -> None:
    image = image_of_layers(b"{}", [PushedLayer("sha256:1", 10), PushedLayer("sha256:2", 5, zstd=True)])
    manifest = json.loads(image.manifest)
    assert image.media_type == manifest["mediaType"] == OCI_MANIFEST
    assert [layer["mediaType"].rpartition("+")[2] for layer in manifest["layers"]] == ["gzip", "zstd"]
    assert manifest["config"]["size"] == 2


class TestImage:
    LAYER = make_layer([LayerFile("app/main.py", b"1")], ("app",))

    @pytest.mark.parametrize(
        ("media_type", "layer_type"),
        [
            (DOCKER_MANIFEST, "application/vnd.docker.image.rootfs.diff.tar.gzip"),
            (OCI_MANIFEST, "application/vnd.oci.image.layer.v1.tar+gzip"),
        ],
    )
    def test_layers_and_configuration_agree(self, media_type: str, layer_type: str) -> None:
        image = append_layers(base(media_type), [(self.LAYER, "source")], {"a": "b"})
        manifest, config = json.loads(image.manifest), json.loads(image.config)
        assert manifest["layers"][-1] == {
            "mediaType": layer_type,
            "size": self.LAYER.size,
            "digest": self.LAYER.digest,
        }
        assert manifest["config"]["digest"] == image.config_digest
        assert manifest["config"]["size"] == len(image.config)
        assert config["rootfs"]["diff_ids"] == ["sha256:1", self.LAYER.diff_id]
        assert config["config"] == {
            "Env": ["A=1"],
            "User": "65532:65532",
            "WorkingDir": "/app",
            "Labels": {"a": "b"},
        }

    def test_equal_input_gives_equal_digest(self) -> None:
        once = append_layers(base(), [(self.LAYER, "source")], {"a": "b", "c": "d"})
        again = append_layers(base(), [(self.LAYER, "source")], {"c": "d", "a": "b"})
        assert once.digest == again.digest

    @pytest.mark.parametrize(
        "image",
        [
            ImageManifest("application/vnd.oci.image.index.v1+json", base().manifest, base().config),
            ImageManifest(DOCKER_MANIFEST, b"{}", b"{}"),
            ImageManifest(DOCKER_MANIFEST, b"[", b"{}"),
            ImageManifest(DOCKER_MANIFEST, base().manifest, b'{"rootfs": {"diff_ids": []}}'),
        ],
    )
    def test_invalid_base_image(self, image: ImageManifest) -> None:
        with pytest.raises(ImageInvalid):
            append_layers(image, [(self.LAYER, "source")], {})


@pytest.mark.parametrize(
    ("auth", "credentials"),
    [
        ("", ("", "")),
        ('{"auths": {"registry:5000": {"auth": "dTpwOnE="}}}', ("u", "p:q")),
        ('{"auths": {"http://registry:5000/v2/": {"username": "u", "password": "p"}}}', ("u", "p")),
        ('{"auths": {"other": {"username": "u", "password": "p"}}}', ("", "")),
    ],
)
def test_registry_credentials(auth: str, credentials: tuple[str, str]) -> None:
    assert RegistryCredential(auth).pair("registry:5000") == credentials


@pytest.mark.parametrize(
    ("auth", "message"),
    [
        ("", "tides-push does not exist"),
        ("{", "tides-push has an invalid"),
        ("[" * 100_000, "tides-push has an invalid"),
        ('{"auths": {"registry:5000": {"auth": 5}}}', "tides-push has an invalid"),
        (
            '{"auths": {"other": {"username": "u", "password": "p"}}}',
            "tides-push has no credential for regist",
        ),
    ],
)
def test_error_names_the_registry_secret(auth: str, message: str) -> None:
    with pytest.raises(BuildRefused, match=message) as refused:
        RegistryCredential(auth, "tides-push").pair("registry:5000")
    assert refused.value.reason == "RegistryPush" and refused.value.hint
    assert not auth or auth not in repr(RegistryCredential(auth, "tides-push"))


def test_image_labels_contain_no_secret() -> None:
    source = {"git": {"url": "https://git.example.org/x?token=very-secret", "commit": "c" * 40}}
    builder = TreeBuilder(SourceLimits())
    builder.add("main.py", io.BytesIO(b""), executable=False)
    labels = _labels(read_settings(environment({**BUILD, "source": source})), builder.finish(), "key")
    assert labels["org.opencontainers.image.source"] == "https://git.example.org/x"


def test_largest_plan_fits_into_the_termination_message() -> None:
    names = [f"A_LONG_NAME_{number:04d}" for number in range(128)]
    files = {
        "main.py": b"def kickoff(): ...\n",
        "crew.toml": f"[deployment]\nentrypoint = 'main:kickoff'\n[run]\nenv_required = {names!r}\n".encode(),
    }
    result = {
        "outcome": "built",
        "image": f"registry.example.org/{'team/' * 20}crews/demo@sha256:{'0' * 64}",
        "plan": make_plan(files, None, ["3.11"]).plan.as_status(),
        "tree": "0" * 64,
        "build_key": "0" * 64,
        "dependencies_key": "0" * 64,
    }
    assert json.loads(termination_message(result)) == result
    assert len(termination_message(result)) <= 4096
    files["crew.toml"] = files["crew.toml"].replace(b"A_LONG_NAME", b"A_NAME_THAT_IS_TOO_LONG")
    with pytest.raises(PlanError, match="characters in total") as raised:
        make_plan(files, None, ["3.11"])
    assert raised.value.reason == "ConfigInvalid"
