"""The parts of the command line that work without a service."""

import gzip
import io
import json
import os
import subprocess
import tarfile
from pathlib import PureWindowsPath

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crds.installation_limits import RANGES, InstallationLimits
from crewyard.call import Page
from crewyard.cli import event_lines, json_object, output, source_tree
from crewyard.cli.commands import env, runs
from crewyard.cli.main import call
from crewyard.cli.pack import MAX_UNPACKED_BYTES, pack
from crewyard.cli.pages import items
from crewyard.cli.source_tree import clean_commit, read_tree
from crewyard.errors import LocalFileError
from crewyard.plan.lfs_pointer import pointer_notes

PLAIN = st.text(st.characters(min_codepoint=32, blacklist_categories=("Cs", "Cc", "Zl", "Zp")), max_size=20)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("export A=1", "1"),
        ("A = 1 ", "1"),
        ("A=", ""),
        ("A='a # b'", "a # b"),
        ('A="a\\n\\"b\\""', 'a\n"b"'),
        ("A='a\\n'", "a\\n"),
        ("A=a # comment", "a"),
        ("A= # comment", ""),
        ("A=#b", "#b"),
        ("A=a#b", "a#b"),
        ("A='a' # comment", "a"),
        ("A=b=c", "b=c"),
        ("A=a\u2028b\x0cc", "a\u2028b\x0cc"),
        ('A="-----BEGIN\nabc=\n-----END"', "-----BEGIN\nabc=\n-----END"),
        ("A='one\r\ntwo' # comment", "one\ntwo"),
        ('A="C:\\dir\\new"', "C:\\dir\new"),
        ('A="a\\rb\\$c"', "a\rb$c"),
    ],
)
def test_lines_of_an_env_file(line, value):
    assert env.parse(f"# first\n\n{line}\n") == {"A": value}


@pytest.mark.parametrize("line", ["A", "1A=1", "A='a", 'A="a\\"', "A='a' b", "=1"])
def test_an_invalid_line_is_reported_by_number(line):
    with pytest.raises(click.UsageError, match="line 2"):
        env.parse(f"B=1\n{line}\n")


def test_an_input_that_is_no_object_is_refused_with_the_next_step(tmp_path):
    file = tmp_path / "input.json"
    file.write_text('["boats"]')
    with pytest.raises(click.UsageError, match="pass only one of --input and --input-file"):
        json_object.read_inputs("{}", file)
    with pytest.raises(click.UsageError, match=r"^--input is not JSON: .*; pass a file with --input-file$"):
        json_object.read_inputs("input.json", None)
    with pytest.raises(
        click.UsageError, match=r'input\.json must be a JSON object, such as {"topic": "boats"}$'
    ):
        json_object.read_inputs(None, file)
    file.write_text("boats")
    with pytest.raises(click.UsageError, match=r"input\.json is not JSON: .*\(char 0\)$"):
        json_object.read_inputs(None, file)


@given(PLAIN)
def test_any_text_in_double_quotes_is_read_back(text):
    quoted = json.dumps(text, ensure_ascii=False)
    assert env.parse(f"A={quoted}") == {"A": text}


def tree_of(path, **files):
    for name, text in files.items():
        file = path / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return read_tree(path)


def names(tree):
    return sorted(tree)


def test_a_checkout_is_what_git_would_track(tmp_path):
    for command in (["init", "-q"], ["config", "core.fsmonitor", "touch /tmp/never"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    (tmp_path / ".gitignore").write_text("build/\n")
    (tmp_path / ".env").write_text("SECRET=1")
    (tmp_path / "out").symlink_to("/etc/hostname")
    tree = tree_of(tmp_path, **{"main.py": "1", "build__x.py": "2", "pkg__a.py": "3"})
    assert names(tree) == [".gitignore", "main.py", "pkg/a.py"]
    assert tree.notes == (
        f"out is a symbolic link that does not point to a file or directory of {tmp_path.name}: left out",
    )


@pytest.mark.parametrize("is_checkout", [True, False])
def test_a_link_stands_for_the_file_or_directory_it_points_to(tmp_path, is_checkout):
    if is_checkout:
        subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
        (tmp_path / ".gitignore").write_text("ignored\n")
    files = {"libs__shared__a.py": "1", "libs__shared__deep__b.py": "2", "crew__main": "3", "ignored": "4"}
    tree_of(tmp_path, **files)
    (tmp_path / ".env").write_text("SECRET=1")
    links = {
        "crew/shared": "../libs/shared",
        "libs/shared/again": "../../crew/main",
        "file": "libs/shared/a.py",
        "up": ".",
        "libs/shared/loop": "..",
        "secret": ".env",
        "away": "../..",
        "hidden": "ignored",
    }
    for name, target in links.items():
        (tmp_path / name).symlink_to(target)
    tree = read_tree(tmp_path)
    linked = ["crew/shared/a.py", "crew/shared/again", "crew/shared/deep/b.py", "file", "libs/shared/again"]
    hidden = [] if is_checkout else ["hidden", "ignored"]
    real = ["crew/main", "libs/shared/a.py", "libs/shared/deep/b.py"]
    assert [name for name in tree if name != ".gitignore"] == sorted([*linked, *hidden, *real])
    assert tree["crew/shared/deep/b.py"] == b"2" and tree["crew/shared/again"] == b"3"
    left_out = [note.partition(" ")[0] for note in tree.notes]
    expected = ["away", "crew/shared/loop", "libs/shared/loop", "secret", "up"]
    assert sorted(left_out) == sorted(expected + ["hidden"] * is_checkout)


def test_ignored_files_are_left_out_in_a_hook_of_another_repository(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("secret\n")
    tree_of(tmp_path, **{"crew__main.py": "1", "crew__secret": "2"})
    # As git sets them for the hooks of a worktree.
    monkeypatch.setenv("GIT_DIR", str(tmp_path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / ".git" / "index"))
    assert names(read_tree(tmp_path / "crew")) == ["main.py"]


def test_git_is_not_taken_from_the_checkout_on_windows(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$NoDefaultCurrentDirectoryInExePath" > {tmp_path}/found\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("NoDefaultCurrentDirectoryInExePath", raising=False)
    assert clean_commit(tmp_path) is None
    assert (tmp_path / "found").read_text() == "1\n"


def test_a_checkout_that_git_cannot_read_is_not_packed_with_ignored_files(tmp_path):
    (tmp_path / ".git").mkdir()
    with pytest.raises(LocalFileError, match="git cannot read"):
        tree_of(tmp_path, **{"main.py": "1", "secrets.txt": "2"})


def test_only_a_clean_tree_has_a_commit(tmp_path):
    def git(*command):
        subprocess.run(
            ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org", *command],
            check=True,
            capture_output=True,
        )

    assert clean_commit(tmp_path) is None
    git("init", "-q")
    tree_of(tmp_path, **{"crew__main.py": "1", "other__x.py": "2"})
    git("add", ".")
    git("commit", "-q", "-m", "one")
    marker = tmp_path / "started"
    git("config", "core.fsmonitor", f"touch {marker}; false")
    (tmp_path / "other" / "x.py").write_text("changed elsewhere")
    assert len(clean_commit(tmp_path / "crew") or "") == 40
    git("config", "status.showUntrackedFiles", "no")
    (tmp_path / "crew" / "new.py").write_text("3")
    assert clean_commit(tmp_path / "crew") is None
    (tmp_path / "crew" / "new.py").unlink()
    (tmp_path / "crew" / "main.py").write_text("changed")
    assert clean_commit(tmp_path / "crew") is None
    assert not marker.exists()


def test_a_checkout_has_the_files_of_its_submodules(tmp_path):
    def git(directory, *command):
        settings = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
        subprocess.run(["git", "-C", str(directory), *settings, *command], check=True, capture_output=True)

    for name in ("tools", "crew"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q")
        (tmp_path / name / f"{name}.py").write_text("1")
        git(tmp_path / name, "add", ".")
        git(tmp_path / name, "commit", "-q", "-m", "one")
    git(tmp_path / "crew", "submodule", "add", "-q", str(tmp_path / "tools"), "libs/tools")
    (tmp_path / "crew" / "new.py").write_text("1")
    assert names(read_tree(tmp_path / "crew")) == [".gitmodules", "crew.py", "libs/tools/tools.py", "new.py"]
    (tmp_path / "crew" / "new.py").unlink()
    git(tmp_path / "crew", "commit", "-q", "-m", "two")
    assert clean_commit(tmp_path / "crew") is not None
    git(tmp_path / "crew", "config", "diff.ignoreSubmodules", "all")
    (tmp_path / "crew" / "libs" / "tools" / "tools.py").write_text("changed")
    assert clean_commit(tmp_path / "crew") is None
    (tmp_path / "crew" / "new.py").write_text("1")
    git(tmp_path / "crew", "submodule", "deinit", "-q", "-f", "libs/tools")
    assert names(read_tree(tmp_path / "crew")) == [".gitmodules", "crew.py", "new.py"]


def test_lint_names_pointers_of_git_lfs(tmp_path):
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'1' * 64}\nsize 5\n"
    tree = tree_of(tmp_path, **{"main.py": "1", "data__a.bin": pointer, "b.txt": pointer[1:]})
    assert pointer_notes(tree, lambda path: tree.file_path(path).stat().st_size) == [
        "data/a.bin is a pointer of Git LFS: the crew gets the pointer instead of the file"
    ]


def test_a_file_name_that_is_not_utf_8_is_refused(tmp_path):
    (tmp_path / os.fsdecode(b"\xff.py")).write_text("1")
    with pytest.raises(LocalFileError, match="not UTF-8"):
        read_tree(tmp_path)


def test_a_directory_with_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(source_tree, "MAX_FILES", 2)
    assert len(tree_of(tmp_path, **{"a.py": "", "b.py": ""})) == 2
    with pytest.raises(LocalFileError, match="more than 2 files"):
        tree_of(tmp_path, **{"c.py": ""})


def test_no_installation_takes_more_than_is_packed():
    assert RANGES["entries"][1] == source_tree.MAX_FILES
    assert RANGES["unpacked_bytes"][1] == MAX_UNPACKED_BYTES


def test_an_unusual_number_of_files_is_a_note(tmp_path, monkeypatch):
    monkeypatch.setattr(source_tree, "_UNUSUAL_FILES", 1)
    assert tree_of(tmp_path, **{"a.py": ""}).notes == ()
    assert tree_of(tmp_path, **{"b.py": ""}).notes == (
        f"{tmp_path} has 2 files; is it the directory of the crew?",
    )


def test_an_error_names_the_file_that_became_unreadable(tmp_path):
    tree = tree_of(tmp_path, **{"main.py": "1", "other.py": "2"})
    (tmp_path / "other.py").unlink()
    with pytest.raises(LocalFileError, match=r"other\.py cannot be read"):
        pack(tree, (), io.BytesIO())
    os.mkfifo(tmp_path / "other.py")
    with pytest.raises(LocalFileError, match=r"other\.py changed"):
        pack(tree, (), io.BytesIO())


def test_items_created_while_a_list_is_read_come_once():
    rows = [{"id": number} for number in range(250, 0, -1)]

    def read(number, size):
        found = Page(
            rows[(number - 1) * size : number * size], len(rows), number, size, number * size < len(rows)
        )
        rows.insert(0, {"id": len(rows) + 1})
        return found

    found = [item["id"] for item in items(read, None)]
    assert found == list(range(250, 0, -1))


@pytest.mark.parametrize(("limit", "pages"), [(2, [1]), (20, [1, 2, 3])])
def test_records_that_have_only_a_number_are_all_listed(limit, pages):
    read = []

    def page_of(number, _size):
        read.append(number)
        first = 5 - 2 * (number - 1)
        rows = [{"number": row} for row in range(first, max(0, first - 2), -1)]
        return Page(rows, 5, number, 2, number < 3)

    assert [item["number"] for item in items(page_of, limit)] == [5, 4, 3, 2, 1][:limit]
    assert read == pages


def test_without_git_caches_and_environments_are_excluded(tmp_path):
    files = {
        "main.py": "1",
        "__pycache____x.pyc": "2",
        ".venv__bin": "3",
        ".env": "4",
        "node_modules__x": "5",
    }
    assert names(tree_of(tmp_path, **files)) == ["main.py"]


def test_equal_trees_make_equal_archives(tmp_path):
    packed = []
    for name in ("one", "two"):
        tree = tree_of(tmp_path / name, **{"main.py": "1", "pkg__a.py": "2", "data.csv": "3"})
        out = io.BytesIO()
        packed.append(pack(tree, {"data.csv"}, out))
    assert packed[0] == packed[1]
    assert packed[0].files == 2
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(out.getvalue()))) as tar:
        assert tar.getnames() == ["main.py", "pkg/a.py"]


@pytest.mark.parametrize(
    ("kind", "data", "line"),
    [
        ("log", {"message": "hello", "level": "info"}, "hello"),
        ("log", {"message": "no", "level": "error", "logger": "crew"}, "error: no"),
        ("run.completed", {"duration_ms": 61000, "output": 1}, "■ completed after 1m1s"),
        (
            "run.failed",
            {"duration_ms": 5, "error": {"reason": "CrewError", "message": "boom"}},
            "■ failed after 0.0s: CrewError: boom",
        ),
        ("artifact", {"name": "a.md", "size": 2048, "partial": True}, "+ a.md (2.0 KiB, partial)"),
        ("tool.called", {"tool": "search", "input": {"q": "x"}}, '· tool.called search: {"q": "x"}'),
        ("usage", {"model": "m"}, None),
        ("note", {"run_id": "r", "timestamp": "t", "text": "x"}, '· note {"text": "x"}'),
    ],
)
def test_events_are_lines(kind, data, line):
    assert event_lines.line({"id": 1, "type": kind, "data": data}) == line


@pytest.mark.parametrize(
    ("calls", "line"),
    [
        ([], None),
        ([("m", 3, 4)], "tokens: m 3 in, 4 out"),
        ([("m", 999, 0), ("n", 1, 2), ("m", 1, 5)], "tokens: m 1,000 in, 5 out; n 1 in, 2 out"),
        (
            [(None, 1, 2), ("", 3, 4), ({"a": 1}, 1, 1)],
            'tokens: unknown model 4 in, 6 out; {"a": 1} 1 in, 1 out',
        ),
        ([("m", -1, True), ("m", "5", 10**9 + 1), ("m", 10**9, None)], "tokens: m 1,000,000,000 in, 0 out"),
    ],
)
def test_tokens_of_a_run_are_one_line(calls, line):
    data = [{"model": m, "prompt_tokens": p, "completion_tokens": c} for m, p, c in calls]
    assert event_lines.tokens(data) == line


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (1 << 30, "1.0 GiB")]
)
def test_sizes(count, text):
    assert output.size(count) == text


@pytest.mark.parametrize(
    ("usage", "texts"),
    [
        ({}, ["-", "-"]),
        ({"usage": None}, ["-", "-"]),
        ({"cost": None, "currency": None}, ["1,503", "-"]),
        ({"cost": 0.01234, "currency": "USD"}, ["1,503", "0.0123 USD"]),
        ({"cost": 2.5, "currency": "EUR"}, ["1,503", "2.50 EUR"]),
        ({"cost": 0, "currency": "EUR"}, ["1,503", "0.00 EUR"]),
    ],
)
def test_runs_have_columns_of_tokens_and_cost(usage, texts):
    tokens = {"prompt_tokens": 1200, "completion_tokens": 303, "artifact_bytes": 0}
    row = {"usage": {**tokens, **usage}} if "cost" in usage else usage
    columns = {column.title: column.text for column in runs.COLUMNS}
    assert [columns[title](row) for title in ("TOKENS", "COST")] == texts


def test_init_and_lint_agree(tmp_path, capsys):
    assert call(["init", str(tmp_path / "crew")]) == 0
    assert call(["lint", str(tmp_path / "crew"), "--json"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert json.loads(printed[-1])["entrypoint"] == "main:kickoff"
    assert call(["init", str(tmp_path / "crew")]) == 2


def test_lint_reports_the_error_and_the_fix(tmp_path, capsys):
    tree_of(
        tmp_path,
        **{"crew.toml": '[deployment]\nentrypoint = "main:kickof"\n', "main.py": "def kickoff(): pass"},
    )
    assert call(["lint", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert "EntrypointNotFound" in printed
    assert "kickoff" in printed


def test_lint_takes_the_paths_of_windows_as_deploy_does(tmp_path, monkeypatch):
    monkeypatch.setattr("crewyard.cli.context.PurePath", PureWindowsPath)
    tree_of(tmp_path, **{"agents__main.py": "print(1)"})
    assert call(["lint", str(tmp_path), "--crew", "agents\\main.py"]) == 0


def test_lint_checks_for_a_private_index(tmp_path, capsys):
    tree_of(tmp_path, **{"main.py": "def kickoff(): pass", "requirements.txt": "git+https://git.test/x\n"})
    assert call(["lint", str(tmp_path)]) == 0
    assert call(["lint", str(tmp_path), "--private-index"]) == 1
    assert "DependencyResolution" in capsys.readouterr().err


def test_lint_checks_the_packages_that_a_project_adds(tmp_path, capsys):
    tree_of(tmp_path, **{"main.py": "def kickoff(): pass", "requirements.txt": "six\n"})
    added = ["--requirement", "tidewatch>=2", "--requirement", "soundings"]
    assert call(["lint", str(tmp_path), *added, "--json"]) == 0
    note = "spec.build.requirements of the Project adds: tidewatch>=2, soundings"
    assert json.loads(capsys.readouterr().out)["notes"] == [note]
    assert call(["lint", str(tmp_path), "--requirement", "./libs/x"]) == 1
    printed = capsys.readouterr().err
    assert "ConfigInvalid: spec.build.requirements of the Project has './libs/x'" in printed


def test_lint_checks_the_dockerfile_that_a_project_names(tmp_path, capsys):
    tree_of(tmp_path, **{"main.py": "def kickoff(): pass", "images__a": "FROM python:3.12\nUSER 1\n"})
    assert call(["lint", str(tmp_path), "--dockerfile", "images/a", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["python"] == "3.12" and any("USER" in note for note in found["notes"])
    assert call(["lint", str(tmp_path), "--dockerfile", "images/b"]) == 1
    assert "spec.build.dockerfile of the Project" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a\\b.py", "does not use / as separator"),
        ("a:b.py", "does not use / as separator"),
        ("a\nb.py", "has control characters"),
        (".wh.a", "image layers reserve"),
    ],
)
def test_lint_and_deploy_refuse_paths_that_no_build_takes(tmp_path, capsys, name, problem):
    tree_of(tmp_path, **{"main.py": "def kickoff(): pass", "data__x": "1"})
    for path in (tmp_path / name, tmp_path / "data" / name):
        path.write_text("1")
    assert call(["lint", str(tmp_path)]) == 1
    printed = capsys.readouterr().err
    assert "ContextInvalid: the path" in printed and problem in printed and "Rename it" in printed
    tree = read_tree(tmp_path)
    with pytest.raises(LocalFileError, match=problem):
        pack(tree, {f"data/{name}"}, io.BytesIO())
    assert pack(tree, {name, f"data/{name}"}, io.BytesIO()).files == 2
    (tmp_path / name).unlink()
    tree_of(tmp_path, **{"crew.toml": '[build]\nexclude = ["data"]\n'})
    assert call(["lint", str(tmp_path)]) == 0


def test_lint_notes_a_source_above_the_usual_sizes(tmp_path, capsys):
    tree_of(tmp_path, **{"main.py": "def kickoff(): pass", "data__x": "1" * 100})
    assert call(["lint", str(tmp_path)]) == 0
    assert "context_bytes" not in capsys.readouterr().err
    with (tmp_path / "data" / "x").open("ab") as file:
        file.truncate(101 << 20)
    assert call(["lint", str(tmp_path)]) == 0
    printed = capsys.readouterr().err
    assert "note: the source has 101.0 MiB; by default an installation takes 100.0 MiB as an " in printed
    assert InstallationLimits().context_bytes == 100 << 20 and InstallationLimits().unpacked_bytes == 1 << 30


@pytest.mark.parametrize("version", ["3.11.4", "latest", ""])
def test_lint_refuses_what_is_no_version_of_python(tmp_path, capsys, version):
    project = "[project]\nname = 'x'\nrequires-python = '>=3.11'\n"
    tree_of(tmp_path, **{"main.py": "def kickoff(): pass", "pyproject.toml": project})
    assert call(["lint", str(tmp_path), "--python", "3.12", "--python", version]) == 2
    assert f"{version!r} is not a version such as 3.11" in capsys.readouterr().err


def test_lint_notes_keys_without_effect(tmp_path, capsys):
    tree_of(
        tmp_path,
        **{"crewship.toml": '[deployment]\nregion = "eu"\n', "main.py": "def kickoff(): pass"},
    )
    note = "crewship.toml: ignored keys: deployment.region"
    assert call(["lint", str(tmp_path)]) == 0
    assert f"note: {note}" in capsys.readouterr().err
    assert call(["lint", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == [note]


def test_lint_of_a_directory_sees_its_repository(tmp_path, capsys):
    tree_of(
        tmp_path,
        **{
            "crews/a/main.py": "def kickoff(): pass",
            "crews/a/requirements.txt": "-e ../../libs/x\n",
            "libs/x/pyproject.toml": "[project]\nname = 'x'\ndependencies = ['six']\n",
        },
    )
    assert call(["lint", str(tmp_path / "crews/a")]) == 1
    assert "outside of the source" in capsys.readouterr().err
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert call(["lint", str(tmp_path / "crews/a"), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["dependencies"] == "crews/a/requirements.txt"
    assert row["notes"] == ["needs libs/x of the repository: deploy from git with source.git.path crews/a"]


def test_lint_names_the_assumed_pythons(tmp_path, capsys):
    tree_of(tmp_path, **{"crew.toml": '[deployment]\npython = "3.14"\n', "main.py": "def kickoff(): pass"})
    assert call(["lint", str(tmp_path)]) == 0
    assert "checked for Python 3.11 to 3.14; pass --python" in capsys.readouterr().err
    assert call(["lint", str(tmp_path), "--python", "3.11"]) == 1
    printed = capsys.readouterr().err
    assert "pass --python" not in printed
    assert "'3.14'; offered here: 3.11" in printed and "operator of the service can offer more" in printed


@pytest.mark.parametrize(
    "text",
    [
        *(":80", "/ollama", "models/ollama:http", "models:80;81", "models/:80", "models/ollama:"),
        *("models/ollama:80,", "models/app=ollama,v2", "models/app=a,app=b"),
    ],
)
def test_a_wrong_egress_is_refused_with_an_example(capsys, text):
    assert call(["projects", "set", "demo", "--egress", text]) == 2
    assert "is not like models/ollama:11434" in capsys.readouterr().err


def test_set_needs_something_to_set(capsys):
    assert call(["projects", "set", "demo"]) == 2
    assert call(["projects", "set", "demo", "--egress", "models", "--no-egress"]) == 2
    assert call(["projects", "set", "demo", "--month-tokens", "5", "--no-budget"]) == 2
    printed = capsys.readouterr().err
    assert call(["projects", "set", "demo", "--run-cost", "0", "--no-budget"]) == 2
    assert "--month-tokens, --month-cost, --run-tokens, --run-cost or --no-budget" in printed
    assert call(["projects", "set", "demo", "--requirement", "lxml", "--no-requirements"]) == 2
    assert "give --requirement, or --no-requirements" in capsys.readouterr().err
    assert "give --egress, or --no-egress" in printed and "give --no-budget, or limits" in printed


def test_a_missing_address_is_an_error_with_the_next_step(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("CREWYARD_CONFIG", str(tmp_path / "none"))
    monkeypatch.delenv("CREWYARD_URL", raising=False)
    assert call(["projects", "list"]) == 2
    assert "crewyard login" in capsys.readouterr().err


def test_a_directory_without_files_is_wrong_usage(tmp_path, capsys):
    assert call(["lint", str(tmp_path)]) == 2
    assert "has no files to deploy" in capsys.readouterr().err


def test_source_above_the_limit_is_wrong_usage(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("crewyard.cli.pack.MAX_UNPACKED_BYTES", 1)
    monkeypatch.setenv("CREWYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CREWYARD_API_KEY", "crw_x")
    (tmp_path / "main.py").write_text("12")
    assert call(["deploy", str(tmp_path), "-p", "demo"]) == 2
    assert "the source has more than 1 B" in capsys.readouterr().err


def test_an_unreachable_service_is_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("crewyard.retry.MAX_ATTEMPTS", 1)
    monkeypatch.setenv("CREWYARD_CONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("CREWYARD_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("CREWYARD_API_KEY", "crw_x")
    assert call(["projects", "list"]) == 3
    printed = capsys.readouterr().err
    assert "http://127.0.0.1:9 cannot be reached" in printed
    assert "Traceback" not in printed
