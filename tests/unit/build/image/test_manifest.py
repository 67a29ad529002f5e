"""Manifest and configuration of an image: appended layers, labels."""

import io
import json

import pytest

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
from build.registry.credential import RegistryCredential
from build.settings import SourceLimits, read_settings
from build.source.tree import TreeBuilder
from build.termination import termination_message
from plan.errors import PlanError
from plan.make import make_plan
from tests.unit.build.environment import BUILD, environment


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
