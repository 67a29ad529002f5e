"""Images are built from content: the same content gives the same digest."""

import json
import tarfile
from pathlib import Path

import pytest

from dev.errors import DevClusterError
from dev.images import images, oci
from dev.settings import Settings


def tar_of(work: Path, name: str) -> Path:
    program = work / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    data = work / "data"
    data.write_text("x")
    target = work / name
    oci.write_tar(
        target, {"opt/b/data": data, "opt/a/program": program, "usr/bin/python": "/usr/bin/python3"}
    )
    return target


def test_a_tar_file_is_owned_by_root_sorted_and_without_times(tmp_path: Path) -> None:
    with tarfile.open(tar_of(tmp_path, "one.tar")) as archive:
        entries = archive.getmembers()
    files = [entry.name for entry in entries if not entry.isdir()]
    assert files == ["opt/a/program", "opt/b/data", "usr/bin/python"]
    assert [entry.name for entry in entries if entry.isdir()] == ["opt", "opt/a", "opt/b", "usr", "usr/bin"]
    assert {(entry.uid, entry.gid, entry.mtime) for entry in entries} == {(0, 0, 0)}
    assert {entry.name: entry.mode for entry in entries}["opt/a/program"] == 0o755


def test_the_same_content_gives_the_same_image(tmp_path: Path) -> None:
    one = oci.layer(tar_of(tmp_path, "one.tar"), tmp_path / "one.gz")
    two = oci.layer(tar_of(tmp_path, "two.tar"), tmp_path / "two.gz")
    assert (one.digest, one.diff_id, one.size) == (two.digest, two.diff_id, two.size)
    assert one.size == one.path.stat().st_size
    config = {"User": "65532"}
    assert oci.documents(oci.OciImage([one], config), "x86_64") == oci.documents(
        oci.OciImage([two], config), "x86_64"
    )


def test_the_manifest_points_to_configuration_and_layers(tmp_path: Path) -> None:
    layer = oci.layer(tar_of(tmp_path, "one.tar"), tmp_path / "one.gz")
    config, manifest = oci.documents(oci.OciImage([layer], {"Cmd": ["x"]}), "aarch64")
    read = json.loads(manifest)
    assert read["config"]["size"] == len(config)
    assert [one["digest"] for one in read["layers"]] == [layer.digest]
    assert json.loads(config)["architecture"] == "arm64"
    assert json.loads(config)["rootfs"]["diff_ids"] == [layer.diff_id]


def test_a_key_changes_with_every_part_and_their_borders(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("ab")
    keys = {
        images.content_key([file, "c"]),
        images.content_key([file, "d"]),
        images.content_key([file, {"c": 1}]),
        images.content_key(["ab", "c"]),
        images.content_key(["a", "bc"]),
    }
    assert len(keys) == 5
    file.write_text("changed")
    assert images.content_key([file, "c"]) not in keys


@pytest.mark.parametrize("before", ["first"])
def test_no_images_are_recorded_before_the_first_up(tmp_path: Path, before: str) -> None:
    with pytest.raises(DevClusterError, match="make up"):
        images.recorded(Settings(tmp_path / before))


def test_up_offers_the_pythons_of_the_variable_and_always_the_default() -> None:
    assert images.requested_pythons({}) == ("3.11", "3.13")
    assert images.requested_pythons({"CREWYARD_PYTHONS": "3.14, 3.11"}) == ("3.11", "3.14")
    with pytest.raises(DevClusterError, match=r"CREWYARD_PYTHONS has 3\.10; .*3\.11, 3\.12, 3\.13, 3\.14"):
        images.requested_pythons({"CREWYARD_PYTHONS": "3.10"})


def test_an_older_up_without_further_pythons_still_offers_the_default(tmp_path: Path) -> None:
    built = images.ImageReferences("p", "k", "base@sha256:1")
    settings = Settings(tmp_path)
    assert images.base_images(settings, built) == {"3.11": "base@sha256:1"}
    settings.data.mkdir()
    (settings.data / "pythons.json").write_text('{"3.14": "x@sha256:3", "3.13": "x@sha256:2"}')
    assert list(images.base_images(settings, built)) == ["3.11", "3.13", "3.14"]


def test_images_of_two_pythons_have_records_of_their_own() -> None:
    recipes = [images.base_recipe({}, version) for version in ("3.11", "3.12", "3.13")]
    assert [recipe.tag for recipe in recipes] == ["3.11-slim", "3.12-slim", "3.13-slim"]
    assert len({recipe.key for recipe in recipes}) == 3
