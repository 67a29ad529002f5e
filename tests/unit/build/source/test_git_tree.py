"""Trees that git itself would not write: the result has plain paths or is refused."""

import io
from pathlib import Path

import pygit2
import pytest

from build.errors import BuildRefused
from build.logs import BuildLog
from build.settings import GitSource, SourceLimits
from build.source import git_tree
from build.source.git_fetcher import GitFetcher
from build.source.git_tree import read_tree
from build.source.submodules.fetches import Checkout
from build.source.tree import CheckedSourceTree
from plan.lfs_pointer import LfsPointer
from tests.testbed.git_server import GitServer, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return GitServer.repository(tmp_path, "demo")


def raw_tree(repository: Repository, *entries: tuple[str, bytes, str]) -> str:
    """Write a tree of arbitrary modes, names and object ids."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(sha) for mode, name, sha in entries)
    return repository._git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", data=data)


def read(
    repository: Repository, tree: str, out: io.StringIO | None = None, path: str = ""
) -> CheckedSourceTree:
    sha = repository._git("commit-tree", tree, data=b"odd")
    source = GitSource("https://git.example.org/x", sha, path)
    return read_tree(
        pygit2.Repository(str(repository.path)),
        source,
        SourceLimits(entries=2000),
        BuildLog(out=out or io.StringIO()),
    )


def refusal(repository: Repository, tree: str) -> BuildRefused:
    with pytest.raises(BuildRefused) as raised:
        read(repository, tree)
    assert raised.value.message.isprintable() and raised.value.hint
    return raised.value


NAMES = [
    *(
        b"..",
        b".",
        b"a/b",
        b"a/../../b",
        b"/etc/passwd",
        b"a\nb",
        b"a\x1b[31m",
        b"\xff\xfe",
        b"a\\b",
        b"C:x",
        b"x" * 300,
    ),
    *(
        b".wh.a",
        b"",
        b"a\x7f",
        b"a\xe2\x80\xaeb",
        b"-x",
        b".git",
        b".GIT",
        b"git~1",
        b"main.py",
        b"$(touch x)",
    ),
]


@pytest.mark.parametrize("mode", ["100644", "40000", "160000", "120000", "100777", "140000"])
def test_hostile_names(repository, mode):
    good = repository.commit({"main.py": "1"}, "one")
    blob, tree = repository._git("rev-parse", f"{good}:main.py", f"{good}^{{tree}}").split()
    inner = {"40000": tree, "160000": good}.get(mode, blob)
    for name in NAMES:
        out = io.StringIO()
        try:
            tree_read = read(
                repository, raw_tree(repository, (mode, name, inner), ("100644", b"z.py", blob)), out
            )
            assert all(".." not in path.split("/") and not path.startswith("/") for path in tree_read), name
        except BuildRefused as error:
            assert error.message.isprintable() and error.hint, name
        assert all(line.isprintable() for line in out.getvalue().splitlines()), name


def test_exponential_tree_ends_at_the_entry_limit(repository):
    sha = repository._git("rev-parse", repository.commit({"main.py": "1"}, "one") + ":main.py")
    sha = raw_tree(repository, ("100644", b"a", sha))
    for _ in range(12):
        sha = raw_tree(repository, *[("40000", f"{number:02d}".encode(), sha) for number in range(10)])
    assert refusal(repository, sha).reason == "ContextTooLarge"


def test_deep_tree_ends_at_the_level_limit(repository):
    sha = repository._git("rev-parse", repository.commit({"main.py": "1"}, "one") + ":main.py")
    sha = raw_tree(repository, ("100644", b"a", sha))
    for _ in range(101):
        sha = raw_tree(repository, ("40000", b"d", sha))
    error = refusal(repository, sha)
    assert error.reason == "ContextInvalid" and "100 levels" in error.message


@pytest.mark.parametrize(("mode", "name"), [("100644", b"main.py"), ("40000", b"d"), ("120000", b"link")])
def test_commit_with_missing_objects(repository, mode, name):
    error = refusal(repository, raw_tree(repository, (mode, name, "1" * 40)))
    assert error.reason == "ContextInvalid" and "damaged" in error.message and "git fsck" in error.hint


class NamedDownloads:
    """Downloads of Git LFS whose content is the id that was asked for."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def download(self, _checkout: Checkout, pointers: dict[str, LfsPointer]) -> dict[str, Path]:
        found = {}
        for path, pointer in pointers.items():
            found[path] = self._directory / pointer.oid
            found[path].write_text(pointer.oid)
        return found


def test_two_commits_of_a_submodule_have_their_own_large_files(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_tree, "LfsDownloads", lambda _fetcher: NamedDownloads(tmp_path))
    monkeypatch.setattr(git_tree, "SubmoduleFetches", lambda _fetcher: None)
    fetcher: GitFetcher = object()  # type: ignore[assignment]
    reader = git_tree._TreeReader(SourceLimits(), BuildLog(out=io.StringIO()), fetcher)
    opened = pygit2.Repository(str(repository.path))
    empty = opened[opened.TreeBuilder().write()]
    for number in "12":
        checkout = Checkout(opened, empty, "https://git.example.org/model", 1)  # type: ignore[arg-type]
        pointer = LfsPointer(number * 64, 64)
        file = git_tree._PointerFile(checkout, f"v{number}/w.bin", "w.bin", b"", pointer, False)
        reader._pointers.append(file)
    tree = reader.finish()
    assert {path: bytes(tree[path][:1]) for path in tree} == {"v1/w.bin": b"1", "v2/w.bin": b"2"}
