"""Git checkouts whose own configuration names programs: packing them starts none."""

import subprocess
from pathlib import Path

import pytest

from crewyard.cli.source_tree import clean_commit, git_text, read_outside, read_tree

SETTINGS = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")


def git(directory: Path, *command: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(directory), *SETTINGS, *command], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(directory: Path, **files: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "-q")
    for name, content in files.items():
        (directory / name).write_text(content)
    git(directory, "add", ".")
    git(directory, "commit", "-q", "-m", "one")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """The file that every hostile program creates."""
    return tmp_path / "started"


def read(crew: Path) -> str | None:
    """Read a checkout as `lint` and `deploy` do; return its commit."""
    assert "main.py" in read_tree(crew)
    read_outside(crew)
    git_text(crew, "log", "-1", "--format=%s")
    return clean_commit(crew)


def add_filter(config_of: Path, program: str, name: str = "x", key: str = "clean") -> None:
    git(config_of, "config", f"filter.{name}.{key}", program)
    git(config_of, "config", f"filter.{name}.required", "true")


def touch_files(directory: Path) -> None:
    """Give the files other times, so that git reads them again."""
    for file in directory.glob("*.py"):
        file.write_bytes(file.read_bytes() + b"#")
        file.write_bytes(file.read_bytes()[:-1])


@pytest.mark.parametrize("key", ["clean", "process"])
@pytest.mark.parametrize("name", ["x", "a=b", "\udce9", "a.b"])
def test_a_filter_of_the_checkout_is_not_started(tmp_path, marker, key, name) -> None:
    crew = tmp_path / "crew"
    commit(crew, **{"main.py": "1"})
    (crew / ".git" / "info" / "attributes").write_bytes(f"* filter={name}".encode(errors="surrogateescape"))
    add_filter(crew, f"touch {marker}; cat", name, key)
    touch_files(crew)
    found = read(crew)
    assert not marker.exists()
    # Git cannot override every name.
    assert found == (git(crew, "rev-parse", "HEAD") if name in ("x", "a.b") else None)
    (crew / "main.py").write_text("2")
    assert read(crew) is None
    assert not marker.exists()


def test_a_filter_of_the_user_is_started(tmp_path, marker, monkeypatch) -> None:
    """As that of Git LFS: without it, its files would count as changed."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    git(tmp_path, "config", "--global", "filter.x.clean", f"touch {marker}; cat")
    commit(tmp_path / "crew", **{".gitattributes": "* filter=x", "main.py": "1"})
    marker.unlink()
    touch_files(tmp_path / "crew")
    assert read(tmp_path / "crew") is not None
    assert marker.exists()


def test_a_filter_of_a_submodule_is_not_started(tmp_path, marker) -> None:
    commit(tmp_path / "tools", **{"tools.py": "1"})
    commit(tmp_path / "crew", **{"main.py": "1"})
    crew, tools = tmp_path / "crew", tmp_path / "crew" / "tools"
    git(crew, "submodule", "add", "-q", str(tmp_path / "tools"), "tools")
    git(crew, "commit", "-q", "-m", "two")
    (crew / ".git" / "modules" / "tools" / "info" / "attributes").write_text("* filter=x")
    add_filter(tools, f"touch {marker}; cat")
    touch_files(tools)
    assert read(crew) == git(crew, "rev-parse", "HEAD")
    (tools / "tools.py").write_text("2")
    assert read(crew) is None
    assert not marker.exists()


def test_a_hook_of_the_checkout_is_not_started(tmp_path, marker) -> None:
    crew = tmp_path / "crew"
    commit(crew, **{"main.py": "1"})
    hook = crew / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {marker}\n")
    hook.chmod(0o755)
    touch_files(crew)
    assert read(crew) is not None
    assert not marker.exists()


def test_a_missing_object_is_not_fetched(tmp_path, marker) -> None:
    crew = tmp_path / "crew"
    commit(crew, **{"main.py": "1"})
    head = git(crew, "rev-parse", "HEAD")
    settings = {
        "core.repositoryformatversion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {marker}",
        "protocol.ext.allow": "always",
    }
    for key, value in settings.items():
        git(crew, "config", key, value)
    (crew / ".git" / "objects" / head[:2] / head[2:]).unlink()
    assert read(crew) is None
    assert not marker.exists()
