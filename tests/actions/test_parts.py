"""Unit tests of the actions' modules: tables and properties."""

import gzip
import io
import os
import re
import subprocess
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions.workflow import artifacts, event_lines, failure_location, outputs
from actions.workflow.client import api
from actions.workflow.client.api import pause
from actions.workflow.client.credential import ApiKeyCredential
from actions.workflow.client.sse import StreamReader
from actions.workflow.console import Console, escaped, escaped_property, lines
from actions.workflow.deployment import DeploymentProgress, notice
from actions.workflow.errors import StepFailed
from actions.workflow.source import git
from actions.workflow.source.exclude_patterns import ExcludePatterns
from actions.workflow.source.pack import LIMITS, pack, select
from actions.workflow.source.upload_progress import UploadProgress
from crds.installation_limits import RANGES
from tests.testbed import hostile_file_names


def test_a_failed_upload_names_the_object_store(monkeypatch):
    monkeypatch.setattr(api, "MAX_ATTEMPTS", 1)
    console, end = Console(io.StringIO()), time.monotonic() + 60
    client = api.ApiClient("https://crewyard.example.com", ApiKeyCredential("crw_x"), console, end)
    with pytest.raises(StepFailed, match=r"the upload: 127\.0\.0\.1:9 cannot be reached") as failed:
        client.put("http://127.0.0.1:9/upload?token=signature", {}, lambda: io.BytesIO(b"x"))
    assert "crewyard.example.com" not in failed.value.message and "signature" not in failed.value.message


def test_git_is_not_taken_from_the_checkout_on_windows(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$NoDefaultCurrentDirectoryInExePath" > {tmp_path}/found\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("NoDefaultCurrentDirectoryInExePath", raising=False)
    assert git.text(tmp_path, "rev-parse", "HEAD") is None
    assert (tmp_path / "found").read_text() == "1\n"


def test_all_artifacts_of_a_run_are_listed():
    class Pages:
        def get(self, path):
            number = int(re.search(r"page=([0-9]+)", path)[1])
            return {"data": [{"name": str(number)}], "pagination": {"has_more": number < 150}}

    assert len(list(artifacts.list_artifacts(Pages(), "run_a"))) == 150


@pytest.mark.parametrize(
    ("patterns", "excluded", "included"),
    [
        (["tests"], ["tests/a.py", "a/tests/b"], ["tests2", "a/tests.py"]),
        (["data/*.csv"], ["data/a.csv"], ["data/a/b.csv", "x/data/a.csv"]),
        (["data", "!data/small.csv"], ["data/big.csv"], ["data/small.csv"]),
        (["**/notes.md"], ["notes.md", "a/b/notes.md"], ["a/notes.md.txt"]),
        (["logs/"], ["logs/a", "a/logs/b"], ["logs", "a/logs"]),
        (["/a"], ["a", "a/b"], ["b/a"]),
        (["a/**"], ["a/b", "a/b/c"], ["a"]),
        (["[!a]?"], ["bx", "y/bx"], ["ax", "b"]),
    ],
)
def test_patterns(patterns, excluded, included):
    found = ExcludePatterns(patterns)
    assert [path for path in excluded + included if found.excludes(path)] == excluded


@given(st.text(), st.text())
def test_a_command_is_one_line_and_round_trips(message, value):
    command = f"::error file={escaped_property(value)}::{escaped(message)}"
    assert not re.search(r"[\r\n]", command)
    head, _, rest = command.removeprefix("::error file=").partition("::")
    decoded = (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
    for code, letter in decoded:
        head, rest = head.replace(code, letter), rest.replace(code, letter) if len(code) == 3 else rest
    assert head == value and "," not in escaped_property(value)


@given(st.text())
def test_no_printed_line_breaks_or_moves_the_cursor(text):
    for line in lines(text):
        assert len(line.splitlines()) <= 1
        assert not re.search(r"[\x00-\x08\x7f]|\x1b(?!\[[0-9;]*m)", line)


@given(st.lists(st.text(), max_size=5))
def test_only_commands_are_outside_stop_commands(texts):
    out = io.StringIO()
    with Console(out).commands_stopped() as console:
        for text in texts:
            console.log(text)
        console.command("notice", "x")
    token = out.getvalue().split("\n")[0].removeprefix("::stop-commands::")
    outside = re.split(rf"(?m)^::stop-commands::{token}$|^::{token}::$", out.getvalue())[2::2]
    assert [part.strip("\n") for part in outside] == ["::notice::x", ""]


@given(st.text())
def test_a_cell_stays_one_cell(text):
    found = outputs.cell(text)
    assert "\n" not in found and "\r" not in found
    assert not re.search(r"(?<!\\)(\\\\)*[|<\[`]", found)


def stream(*messages: tuple[str | None, str]) -> list[bytes]:
    found = [b"retry: 500\n", b": hi\n", b"\n"]
    for identifier, data in messages:
        found += [f"id: {identifier}\n".encode()] if identifier else []
        found += [b"event: log\n", f"data: {data}\n".encode(), b"\n"]
    return found


@given(
    st.lists(st.booleans(), min_size=1, max_size=30),
    st.lists(st.integers(min_value=0, max_value=120), max_size=6),
)
def test_every_message_comes_once_however_often_the_connection_breaks(marked, breaks):
    whole = [(str(n) if has else None, f"text {n}") for n, has in enumerate(marked, 1)]
    reader, received = StreamReader(), []
    for end in [*breaks, None]:
        start = int(reader.last or 0)
        received += [message.data for message in reader.messages(stream(*whole[start:])[:end])]
    assert received == [data for _, data in whole]
    assert reader.retry in (0.5, None)


@pytest.mark.parametrize(
    ("message", "directory", "expected"),
    [
        ("crew.toml line 3: deployment.python is '2'", "", ("crew.toml", 3)),
        ("crew.toml is not valid TOML: Expected '=' (at line 2, column 5)", "a/", ("a/crew.toml", 2)),
        ("requirements/dev.txt line 7: ./x is a local path", "a", ("a/requirements/dev.txt", 7)),
        (
            "main.py does not define 'x' (asked for by crew.toml line 2: deployment.entrypoint)",
            "",
            ("crew.toml", 2),
        ),
        ("pyproject.toml: the dependencies are dynamic", "", ("pyproject.toml", None)),
        ("../../etc/passwd.txt line 1: x", "", None),
        ("no file in it", "", None),
    ],
)
def test_failure_locations(message, directory, expected):
    assert failure_location.locate(message, directory) == expected


def superseded(**fields):
    return DeploymentProgress("dep_a", "superseded", "https://x", "", created_at="2026-11-21", **fields)


@pytest.mark.parametrize(
    ("active", "passed_over"),
    [
        (None, False),
        ({}, True),
        ({"id": "dep_a", "created_at": "2026-11-21"}, True),  # it became active meanwhile: look again
        ({"id": "dep_b", "created_at": "2026-11-20"}, True),
        ({"id": "dep_b", "created_at": "2026-11-21"}, False),
    ],
)
def test_which_deployment_is_passed_over(active, passed_over):
    assert superseded(active=active).passed_over is passed_over
    assert not superseded(active=active, activated=True).passed_over


def test_a_deployment_beside_no_active_one_fails():
    with pytest.raises(StepFailed, match=r"^dep_a is built, but does not become active: no deployment is\."):
        notice(superseded(active={}))
    assert notice(superseded(active={}, activated=True)) is None


@pytest.mark.parametrize("name", [*hostile_file_names.REPOSITORY, *hostile_file_names.OUTSIDE])
def test_a_hostile_name_is_not_downloaded(tmp_path, name):
    downloads = artifacts.DownloadDirectory(tmp_path, windows=False)
    with pytest.raises(StepFailed, match="is not downloaded"):
        downloads.target(name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", hostile_file_names.WINDOWS)
def test_windows_reserves_more_names(tmp_path, name):
    with pytest.raises(StepFailed, match="Windows"):
        artifacts.DownloadDirectory(tmp_path, windows=True).target(name)
    assert artifacts.DownloadDirectory(tmp_path, windows=False).target(name)


@pytest.mark.parametrize("name", hostile_file_names.HARMLESS)
def test_a_harmless_name_is_downloaded(tmp_path, name):
    assert artifacts.DownloadDirectory(tmp_path, windows=False).target(name) == tmp_path / name


def test_the_actions_have_the_rules_of_the_service():
    root = Path(__file__).parents[2]
    assert (root / "actions/workflow/file_names.py").read_text() == (root / "plan/file_names.py").read_text()


def test_a_pause_grows_is_bounded_and_honours_retry_after():
    assert pause(1, 7.0) == 7.0 and pause(1, 9999.0) == 120.0
    assert all(0 < pause(number, None) <= 15 for number in range(60))
    assert event_lines.duration(3_725_000) == "1 h 2 min 5 s"


def test_progress_is_logged_every_few_seconds():
    clock, logged = iter(range(100)), []
    body = UploadProgress(io.BytesIO(b"x" * 4096), 4096, logged.append, now=lambda: float(next(clock)))
    while body.read(512):
        pass
    assert logged == ["sent 1.5 KiB of 4.0 KiB, 0.5 KiB/s", "sent 3.0 KiB of 4.0 KiB, 0.5 KiB/s"]


@pytest.fixture
def checkout(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    def write(**files):
        for name, content in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        subprocess.run(["git", "-C", str(tmp_path), "add", "-A"], check=True)
        return tmp_path

    return write


def packed(root, *excludes):
    out = io.BytesIO()
    return pack(select(root, git.tracked_files(root), ExcludePatterns(excludes)), out), out.getvalue()


def test_equal_content_makes_equal_bytes(checkout, tmp_path):
    root = checkout(main="x", b__data="y")
    first, raw = packed(root)
    (root / "main").touch()
    (root / "main").chmod(0o600)
    assert packed(root) == (first, raw)
    assert (first.entries, first.unpacked, first.size) == (2, 2, len(raw))
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        assert [(m.name, m.mtime, m.uid, m.uname) for m in tar] == [("b/data", 0, 0, ""), ("main", 0, 0, "")]
    assert gzip.GzipFile(fileobj=io.BytesIO(raw)).read(1) and raw[4:8] == b"\0\0\0\0"


def test_a_build_accepts_the_archive(checkout):
    from build.settings import SourceLimits
    from build.source.archive import read_archive

    root = checkout(**{"main": "x", "größe": "y", "x" * 180: "long"})
    (root / "again").symlink_to("größe")
    program = root / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (root / "loose").write_text("not tracked")
    subprocess.run(["git", "-C", str(root), "add", "again", "tool"], check=True)
    _, raw = packed(root)
    tree = read_archive(io.BytesIO(raw), len(raw), SourceLimits())
    assert sorted(tree) == sorted(["again", "größe", "main", "tool", "x" * 180])
    assert tree["again"] == b"y"
    assert tree.entry("tool").executable and not tree.entry("main").executable


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "loose", "self", ".", ".git/config"])
def test_a_link_to_an_untracked_file_is_omitted_with_a_note(checkout, target):
    root = checkout(directory__a="x")
    (root / "self").symlink_to(target)
    subprocess.run(["git", "-C", str(root), "add", "self"], check=True)
    (root / "loose").write_text("not tracked")
    source = select(root, git.tracked_files(root), ExcludePatterns([]))
    assert list(source.files) == ["directory/a"]
    assert "self is a symbolic link" in source.notes[0]
    assert select(root, git.tracked_files(root), ExcludePatterns(["self"])).notes == (
        "1 files excluded by the input exclude",
    )


def test_a_link_to_a_directory_becomes_its_tracked_files(checkout):
    root = checkout(libs__shared__a="x", libs__shared__deep__b="y", main="z")
    (root / "crew").mkdir()
    (root / "crew/shared").symlink_to("../libs/shared")
    (root / "libs/shared/again").symlink_to("../../main")
    (root / "libs/shared/loop").symlink_to("../../crew")
    subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    (root / "libs/shared/loose").write_text("not tracked")
    source = select(root, git.tracked_files(root), ExcludePatterns(["deep"]))
    assert {
        path: str(file.relative_to(root)) for path, (file, _) in source.files.items() if "loop" not in path
    } == {
        "crew/shared/a": "libs/shared/a",
        "crew/shared/again": "main",
        "libs/shared/a": "libs/shared/a",
        "libs/shared/again": "main",
        "main": "main",
    }
    assert max(path.count("loop") for path in source.files) == 4


def test_links_to_linked_directories_are_bounded(checkout, monkeypatch):
    monkeypatch.setitem(LIMITS, "entries", 100)
    root = checkout(main="x")
    for directory, other in (("a", "b"), ("b", "a")):
        (root / directory).mkdir()
        for number in range(4):
            (root / directory / f"{number}").symlink_to(f"../{other}")
    subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    with pytest.raises(StepFailed, match="more than 100 files"):
        select(root, git.tracked_files(root), ExcludePatterns([]))


def test_a_directory_that_became_a_link_is_rejected(checkout, tmp_path_factory):
    root = checkout(directory__a="x", b="y")
    away = tmp_path_factory.mktemp("away")
    (away / "a").write_text("secret")
    (root / "directory/a").unlink()
    (root / "directory").rmdir()
    (root / "directory").symlink_to(away)
    with pytest.raises(StepFailed, match="out of the checkout"):
        packed(root)


def test_missing_files_and_submodules_are_omitted_with_a_note(checkout):
    root = checkout(a="x", b="y", c="z")
    (root / "b").unlink()
    sub = ["update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor"]
    subprocess.run(["git", "-C", str(root), *sub], check=True)
    source = select(root, git.tracked_files(root), ExcludePatterns(["c"]))
    assert list(source.files) == ["a"]
    assert len(source.notes) == 3 and "vendor is a submodule" in source.notes[0]


def test_files_of_a_submodule_that_is_checked_out(checkout, tmp_path):
    root = checkout(a="x")
    other = tmp_path / "other"
    settings = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    (other / "tool.py").write_text("1")
    subprocess.run(["git", "-C", str(other), "add", "."], check=True)
    subprocess.run(["git", "-C", str(other), *settings, "commit", "-q", "-m", "one"], check=True)
    subprocess.run(["git", "-C", str(root), *settings, "submodule", "add", "-q", str(other), "v"], check=True)
    source = select(root, git.tracked_files(root), ExcludePatterns([]))
    assert list(source.files) == [".gitmodules", "a", "v/tool.py"] and not source.notes


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "c:x", ".wh.a"])
def test_a_name_that_a_build_rejects_is_rejected_before_the_upload(checkout, name):
    with pytest.raises(StepFailed, match="rename it"):
        packed(checkout(**{name: "x"}))


@pytest.mark.parametrize(("limit", "value"), [("entries", 1), ("unpacked_bytes", 1)])
def test_limits_are_named(checkout, monkeypatch, limit, value):
    from actions.workflow.source import pack as module

    monkeypatch.setitem(module.LIMITS, limit, value)
    with pytest.raises(StepFailed, match=limit):
        packed(checkout(a="x", b="y"))


def test_no_installation_takes_more_than_the_action_packs():
    assert {name: maximum for name, (_, maximum) in RANGES.items() if name in LIMITS} == LIMITS


def test_an_archive_above_the_default_ratio_is_packed(checkout):
    archive, _ = packed(checkout(zeros="\0" * (3 << 20)))
    assert archive.unpacked > 200 * archive.size
