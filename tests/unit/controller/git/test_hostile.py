"""Names and messages in repositories that try to be more than words: nothing runs or looks like more."""

import shutil
import socket
from functools import partial
from pathlib import Path

from controller.git.remote import fetch_commit
from controller.git.repository import GitProblem, Remote, RemoteHead
from egress.addresses import AddressRules
from tests.testbed.listeners import listening
from tests.unit.controller.source.polling import PollingConfig, problem

MESSAGES = [
    *(
        f"{word} one"
        for word in ("$(touch {0})", "`touch {0}`", "; touch {0};", "| touch {0}", "&& touch {0}")
    ),
    *(
        "--upload-pack=touch",
        "-rf /",
        "%s%n%x",
        "{{7*7}}",
        "${IFS}x",
        "<script>alert(1)</script>",
        "' OR 1=1 --",
    ),
    *(
        "::error file=a::b",
        "::set-output name=a::b",
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "a\rb",
        "a\tb",
    ),
    *("a\u202eb", "a\u2066b\u2069", "a\u200bb", "\ufeffa", "a\u2028b", "a\u2029b", "a\x85b", "a\x0bb\x0cc"),
    *(
        "\n\n\nlate",
        "x" * (1 << 20),
        "\U0001f600" * 1000,
        "é" * 3000,
        "..",
        "../../etc/passwd",
        "a\x7fb\x01c",
        "\x1f",
    ),
]
_COMMANDS = ("touch {0}", "sh -c 'touch {0}'", "echo x > {0}", "curl http://127.0.0.1:1/", ":(){ :|:& };:")
_FORMS = (
    "$(%s)",
    "`%s`",
    "; %s;",
    "| %s",
    "|| %s",
    "&& %s &",
    "\n%s\n",
    "\r\n%s",
    "'; %s; '",
    '"; %s; "',
    "${{ %s }}",
    "{{ %s }}",
    "<(%s)",
    "!%s",
    "%%{%s}",
    "\\$(%s)",
    "--exec=%s",
    "-oProxyCommand=%s",
    "ext::%s",
    "é$(%s)\u202e",
    "\x1b]8;;%s\x07",
    "\u2028%s",
    "=cmd|'%s'!A1",
    "@%s",
)
MESSAGES += [form % command for form in _FORMS for command in _COMMANDS]


def test_corpus_has_enough_hostile_messages():
    assert len({*MESSAGES}) + len({*REFS}) + len({*HOSTILE}) >= 200


def test_hostile_commit_message_is_harmless_text(server, tmp_path):
    """Slow: one fetch over http for each message."""
    repository = server.create("messages")
    repository.configure("uploadpack.allowAnySHA1InWant", "true")
    tree, marks = (
        repository._git("rev-parse", repository.commit({"a": "1"}, "one") + ":"),
        tmp_path / "touched",
    )
    rules, remote = AddressRules.parse(PollingConfig.net_allow, ()), Remote(server.url("messages"))
    for number, message in enumerate(MESSAGES):
        data = message.replace("{0}", str(marks)).encode()
        sha = repository._git("commit-tree", tree, data=data)
        found = fetch_commit(remote, RemoteHead(sha, sha), "", rules, 20, 1 << 24, tmp_path / str(number))
        assert found.subject.isprintable() and len(found.subject) <= 500, message[:40]
    assert not marks.exists()


async def test_messages_in_other_encodings_are_decoded(git, server):
    repository = server.create("letters")
    repository.commit({"a": "1"}, "one")
    for name, codec in (
        ("ISO-8859-1", "latin-1"),
        ("UTF-8", "latin-1"),
        ("rot13", "latin-1"),
        ("idna", "utf-8"),
    ):
        text = b"tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\nencoding %s\n\n%s\n"
        tree = repository._git("rev-parse", "main^{tree}").encode()
        data = text % (tree, name.encode(), "Grüße".encode(codec))
        sha = repository._git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", data=data)
        repository.reset(sha)
        found = await git.commit(Remote(server.url("letters")), RemoteHead("refs/heads/main", sha), "")
        assert found.subject.startswith("Gr") and (found.subject == "Grüße") is (
            name in ("ISO-8859-1", "idna")
        )
    shutil.rmtree(repository.path)


REFS = [
    *(
        "$(touch${IFS}x)",
        "`touch${IFS}x`",
        "a;b",
        "a|b",
        "a&b",
        "a>b",
        "a<b",
        "a'b",
        'a"b',
        "{a,b}",
        "$IFS",
        "a%b",
        "a#b",
        "!a",
    ),
    *("é", "日本", "\U0001f600", "a\u202eb", "a\u2066b", "a\u200bb", "a\xa0b", "a\u2028b", "\ufeffa", "ａ"),
    *(
        "a@b",
        "a=b",
        "a+b",
        "a,b",
        "(a)",
        "a)b",
        "-a",
        "--upload-pack=x",
        "refs/heads/a",
        "HEAD",
        "a/b/c",
        "a-",
        "v1",
    ),
    *("x" * 200, "a" + "/b" * 60, "%2e%2e", "%00", "con", "a.lockx", "0" * 40, "1" * 64, "main@x"),
]


async def test_every_branch_name_that_git_accepts_is_found(git, server):
    """They are found by their name; an error about a missing one shows them harmlessly."""
    repository = server.create("names")
    sha = repository.commit({"a": "1"}, "one")
    lines = "".join(f"create refs/heads/{name}\0{sha}\0" for name in REFS)
    repository._git("update-ref", "--stdin", "-z", data=lines.encode())
    remote = Remote(server.url("names"))
    for name in REFS[::4]:
        assert await git.head(remote, {"branch": name}) == RemoteHead(f"refs/heads/{name}", sha)
    repository.configure("uploadpack.allowReachableSHA1InWant", "false")
    for name in REFS[::6]:
        assert (await git.commit(remote, RemoteHead(f"refs/heads/{name}", sha), "")).subject == "one"
    missing = await problem(git, remote.url, {"branch": "not\x1b[31mthere\u202e\n"})
    assert (
        missing.reason == "BranchNotFound" and missing.message.isprintable() and len(missing.message) < 1200
    )


HOSTILE = [
    *(
        b"refs/heads/../../../x",
        b"refs/heads/..",
        b"../x",
        b"/etc/passwd",
        b"refs/heads/a b",
        b"refs/heads/a\x1b[31m",
    ),
    *(
        b"refs/heads/a\x01",
        b"refs/heads/a\x7f",
        b"refs/heads/\xff\xfe",
        b"refs/heads/a:refs/heads/b",
        b"refs/heads/*",
    ),
    *(
        b"refs/heads/a^",
        b"refs/heads/a~1",
        b"refs/heads/a?",
        b"refs/heads/[a",
        b"refs/heads/a\\b",
        b"-x",
        b"--x=y",
    ),
    *(
        b"refs/heads/.a",
        b"refs/heads/a.lock",
        b"refs/heads/a..b",
        b"refs/heads/@{",
        b"refs/heads//a",
        b"refs/heads/a/",
    ),
    *(
        b"HEAD^{}",
        b"refs/heads/main^{}^{}",
        b"",
        b" ",
        b"refs/heads/" + b"x" * 60000,
        b"capabilities^{}",
        b"\xe2\x80\xae",
    ),
    *(
        b"refs/heads/\t",
        b"refs/heads/a\rb",
        b"refs/heads/\xc3\x28",
        b"refs",
        b"refs/heads/",
        b"$(touch${IFS}x)",
        b".git/config",
    ),
]


def packet(data: bytes) -> bytes:
    return f"{len(data) + 4:04x}".encode() + data


def send(answer: bytes, visitor: socket.socket) -> None:
    visitor.recv(65536)
    visitor.sendall(answer)


async def test_invalid_reference_names_of_a_server_are_ignored(git, tmp_path):
    """Every response yields a head or a problem in printable text; no file appears."""
    able = b"multi_ack side-band-64k ofs-delta shallow symref=HEAD:refs/heads/../x object-format=sha1"
    for name in HOSTILE:
        lines = packet(b"1" * 40 + b" " + name + b"\0" + able + b"\n") + packet(
            b"2" * 40 + b" refs/heads/main\n"
        )
        content = packet(b"# service=git-upload-pack\n") + b"0000" + lines + b"0000"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-advertisement\r\n"

        answer = head + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(content) + content
        with listening(treatment=partial(send, answer)) as server:
            url = f"http://127.0.0.1:{server.port}/x"
            for ref in ({"branch": "main"}, {"branch": "none"}):
                try:
                    found = await git.head(Remote(url), ref)
                    assert found.commit in ("1" * 40, "2" * 40) and found.name in (
                        "HEAD",
                        "refs/heads/main",
                    ), name
                except GitProblem as refusal:
                    assert refusal.message.isprintable() and len(refusal.message) < 1200, name
    assert not list(Path.cwd().glob("x")) and list(tmp_path.iterdir()) == []
