"""Submodules of a commit, fetched from a real git server."""

import io
from collections.abc import Mapping
from pathlib import Path

import pytest

from build.errors import BuildRefused
from build.logs import BuildLog
from build.settings import FetchNetworks, GitSource, SourceLimits
from build.source.fetch_git import fetch_git
from build.source.fetched import FetchedSource
from build.source.submodules.fetches import MAX_LEVELS, MAX_SUBMODULES
from egress.git.credentials import GitCredentials
from tests.testbed.git_server import GitServer, Repository

HERE = FetchNetworks(("127.0.0.0/8",))


def modules(urls: Mapping[str, str], more: str = "") -> str:
    """Return a `.gitmodules` of submodules by path."""
    return "".join(
        f'[submodule "{path}"]\n\tpath = {path}\n\turl = {url}\n{more}' for path, url in urls.items()
    )


def fetch(
    source: GitSource,
    credentials: GitCredentials | None = None,
    out: io.StringIO | None = None,
    network: FetchNetworks = HERE,
    limits: SourceLimits | None = None,
) -> FetchedSource:
    log = BuildLog(out=out or io.StringIO())
    return fetch_git(source, credentials or GitCredentials(), network, limits or SourceLimits(), log)


def refusal(
    source: GitSource, credentials: GitCredentials | None = None, network: FetchNetworks = HERE, **limits: int
) -> BuildRefused:
    with pytest.raises(BuildRefused) as raised:
        fetch(source, credentials, network=network, limits=SourceLimits(**limits))
    assert raised.value.message.isprintable()
    assert "update = none" in raised.value.hint
    return raised.value


def commit(repository: Repository, url: str, sha: str, path: str = "libs/tools", more: str = "") -> str:
    """Commit a crew with one submodule."""
    files = {"main.py": "1", ".gitmodules": modules({path: url}, more)}
    return repository.commit(files, "one", submodules={path: sha})


def test_files_of_submodules_in_submodules(git: GitServer, demo: Repository) -> None:
    deep = git.create("deep").commit({"deep.py": "3"}, "deep")
    middle = git.create("team/middle")
    middle_sha = commit(middle, f"http://127.0.0.1:{git.port}/deep.git", deep, "deep")
    middle.commit({"main.py": "newer"}, "not what the crew names")
    out = io.StringIO()
    tree = fetch(GitSource(git.url("demo"), commit(demo, "../team/middle.git", middle_sha)), out=out).tree
    assert {path: data for path, data in tree.items() if not path.endswith(".gitmodules")} == {
        "main.py": b"1",
        "libs/tools/main.py": b"1",
        "libs/tools/deep/deep.py": b"3",
    }
    assert f"fetching the submodule libs/tools: {git.url('team/middle')} at {middle_sha}" in out.getvalue()


def test_submodule_below_the_path_of_a_monorepo(git: GitServer, demo: Repository) -> None:
    sha = git.create("x").commit({"x.py": "1"}, "x")
    files = {"a/main.py": "1", ".gitmodules": modules({"a/x": "../x.git", "b/x": "../gone.git"})}
    head = demo.commit(files, "one", submodules={"a/x": sha, "b/x": "1" * 40})
    fetched = fetch(GitSource(git.url("demo"), head, "a"))
    assert dict(fetched.tree) == {"main.py": b"1", "x/x.py": b"1"}


def test_equal_submodules_are_fetched_once(git: GitServer, demo: Repository) -> None:
    sha = git.create("x").commit({"x.py": "1"}, "x")
    files = {".gitmodules": modules({"a": "../x.git", "b": "../x.git"})}
    head = demo.commit(files, "one", submodules={"a": sha, "b": sha})
    assert {"a/x.py", "b/x.py"} <= set(fetch(GitSource(git.url("demo"), head)).tree)
    assert sum("/x.git/info/refs" in line for line in git.requests) == 1


@pytest.mark.parametrize(
    ("gitmodules", "text"),
    [
        ("", "has no url in .gitmodules"),
        (modules({"x": "../gone.git"}, "\tupdate = none\n"), "has `update = none`"),
        (modules({"../x": "../gone.git"}), "has no url in .gitmodules"),
    ],
)
def test_submodule_that_is_not_wanted(git: GitServer, demo: Repository, gitmodules: str, text: str) -> None:
    files = {"main.py": "1", **({".gitmodules": gitmodules} if gitmodules else {})}
    out = io.StringIO()
    head = demo.commit(files, "one", submodules={"x": "1" * 40})
    assert set(fetch(GitSource(git.url("demo"), head), out=out).tree) == set(files)
    assert f"x is a submodule that {text}: not fetched" in out.getvalue()


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc",
        "/etc",
        "ext::sh -c touch% /tmp/x",
        "--upload-pack=touch /tmp/x",
        "-u../x",
        "ssh://-oProxyCommand=true/x",
        "../../../x.git",
        "../x/../../../../y.git",
        "http://name:hunter2@127.0.0.1/x.git",
        "git://127.0.0.1/x.git",
        "https://127.0.0.1/a/../../x.git",
        "http://127.0.0.1/x\\nhost",
    ],
)
def test_hostile_url(git: GitServer, demo: Repository, url: str) -> None:
    error = refusal(GitSource(git.url("demo"), commit(demo, url, "1" * 40)))
    assert error.reason == "GitNotFound"
    assert "libs/tools" in error.message and "hunter2" not in error.message
    assert not any("x.git" in line or "y.git" in line for line in git.requests)


@pytest.mark.parametrize(
    ("gitmodules", "problem"),
    [
        ("[include]\n\tpath = /etc/passwd\n", "includes another file"),
        ('[includeIf "gitdir:/"]\n\tpath = x\n', "includes another file"),
        ("[submodule\n", "is not in the format"),
        ("#" * (1 << 20) + "\n", "more than"),
    ],
)
def test_invalid_gitmodules(git: GitServer, demo: Repository, gitmodules: str, problem: str) -> None:
    head = demo.commit({".gitmodules": gitmodules}, "one", submodules={"x": "1" * 40})
    with pytest.raises(BuildRefused, match=problem) as raised:
        fetch(GitSource(git.url("demo"), head))
    assert raised.value.reason == "ContextInvalid"


def test_gitmodules_that_is_a_link_is_refused(git: GitServer, demo: Repository) -> None:
    first = demo.commit({"a": modules({"x": "../x.git"})}, "one", links={"b": "a"})
    file, link = demo._git("rev-parse", f"{first}:a", f"{first}:b").split()
    # git refuses to make such a tree from its index.
    entries = f"120000 blob {link}\t.gitmodules\n100644 blob {file}\ta\n160000 commit {'1' * 40}\tx\n"
    tree = demo._git("mktree", "--missing", data=entries.encode())
    head = demo._git("commit-tree", tree, data=b"two")
    demo.reset(head)
    with pytest.raises(BuildRefused, match="not a plain file"):
        fetch(GitSource(git.url("demo"), head))


def test_only_the_same_server_gets_the_credentials(git: GitServer, demo: Repository, tmp_path: Path) -> None:
    right = GitCredentials("crew", "right")
    git.username, git.password = "crew", "right"
    here = git.create("x").commit({"x.py": "1"}, "x")
    with GitServer(tmp_path / "other") as other:
        there = other.create("x").commit({"x.py": "1"}, "x")
        public = commit(demo, other.url("x"), there)
        assert "libs/tools/x.py" in fetch(GitSource(git.url("demo"), public), right).tree
        other.username, other.password = "crew", "right"
        error = refusal(GitSource(git.url("demo"), public), right)
        assert error.reason == "GitAuthFailed" and "the submodule libs/tools" in error.message
    private = commit(demo, git.url("x"), here)
    assert "libs/tools/x.py" in fetch(GitSource(git.url("demo"), private), right).tree


def test_address_that_the_installation_refuses(git: GitServer, demo: Repository) -> None:
    url = f"http://169.254.169.254:{git.port}/latest.git"
    error = refusal(GitSource(git.url("demo"), commit(demo, url, "1" * 40)))
    assert "169.254.169.254 is a link-local address" in error.message


def test_limits_cover_all_submodules(git: GitServer, demo: Repository) -> None:
    import random

    noise = random.Random(1).randbytes(60_000)
    urls, commits = {}, {}
    for number in range(3):
        commits[f"x{number}"] = git.create(f"x{number}").commit({"a": noise + bytes([number])}, "x")
        urls[f"x{number}"] = f"../x{number}.git"
    head = demo.commit({".gitmodules": modules(urls)}, "one", submodules=commits)
    assert len(fetch(GitSource(git.url("demo"), head)).tree) == 4
    error = refusal(GitSource(git.url("demo"), head), context_bytes=150_000)
    assert error.reason == "ContextTooLarge" and "the submodule x2" in error.message
    with pytest.raises(BuildRefused, match="more than 3 entries"):
        fetch(GitSource(git.url("demo"), head), limits=SourceLimits(entries=3))


def test_number_and_levels_are_bounded(git: GitServer, demo: Repository) -> None:
    sha = ""
    for level in range(MAX_LEVELS + 1):
        repository = git.create(f"level{level}")
        sha = (
            commit(repository, f"../level{level - 1}.git", sha, "x")
            if sha
            else repository.commit({"a": "1"}, "")
        )
    deep = commit(demo, f"../level{MAX_LEVELS}.git", sha)
    assert f"more than {MAX_LEVELS} levels" in refusal(GitSource(git.url("demo"), deep)).message
    many = {
        f"x{number}": f"http://127.0.0.1:{git.port}/x.git?{number}" for number in range(MAX_SUBMODULES + 1)
    }
    leaf = git.create("x").commit({"x.py": "1"}, "x")
    head = demo.commit({".gitmodules": modules(many)}, "many", submodules=dict.fromkeys(many, leaf))
    assert f"more than {MAX_SUBMODULES} submodules" in refusal(GitSource(git.url("demo"), head)).message
