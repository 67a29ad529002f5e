"""Commits that must be signed: signed by git itself, fetched from a real git server."""

import io
import json
import os
import subprocess
from pathlib import Path

import pytest

from build.errors import BuildRefused
from build.logs import BuildLog
from build.settings import CommitSigners, FetchNetworks, GitSource, SourceLimits, read_settings
from build.source.fetch import fetch_source
from build.source.fetch_git import fetch_git
from egress.git.credentials import GitCredentials
from tests.testbed.git_server import GitServer
from tests.testbed.git_server import Repository as GitRepository

ANN, EVE = "ann@example.com", "eve@example.com"
TIMEOUT_SECONDS = 120


def run(*command: str, home: Path, data: bytes = b"") -> str:
    """Run a program of the signer, whose keys are below `home`."""
    environment = {**os.environ, "HOME": str(home), "GNUPGHOME": str(home)}
    done = subprocess.run(
        command, input=data, env=environment, capture_output=True, check=True, timeout=TIMEOUT_SECONDS
    )
    return done.stdout.decode().strip()


def fetch(git: GitServer, commit: str, signers: CommitSigners) -> tuple[dict[str, bytes], str]:
    """Return the files of a commit by one of the signers, and the build log."""
    out = io.StringIO()
    source, here = GitSource(git.url("demo"), commit), FetchNetworks(("127.0.0.0/8",))
    fetched = fetch_git(source, GitCredentials(), here, SourceLimits(), BuildLog(out=out), signers)
    return dict(fetched.tree), out.getvalue()


def refusal(git: GitServer, commit: str, signers: CommitSigners) -> str:
    with pytest.raises(BuildRefused) as refused:
        fetch(git, commit, signers)
    assert refused.value.reason == "VerificationFailed"
    return str(refused.value)


class SshSigner:
    """A key pair of ssh."""

    def __init__(self, home: Path, name: str) -> None:
        home.mkdir(exist_ok=True)
        self.key = str(home / name)
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", self.key, home=home)
        self.public = " ".join(Path(f"{self.key}.pub").read_text().split()[:2])

    def sign(self, repository: GitRepository, commit: str) -> str:
        return repository.sign(commit, self.key)


class OpenPgpSigner:
    """A key pair of OpenPGP without a passphrase."""

    def __init__(self, home: Path, name: str, expires: str = "never") -> None:
        home.mkdir(mode=0o700)
        self.home, self.name = home, name
        quick = ["--batch", "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", expires]
        run("gpg", *quick, home=home)
        self.public = run("gpg", "--armor", "--export", name, home=home)

    def sign(self, repository: GitRepository, commit: str) -> str:
        return repository.sign(commit, self.name, "openpgp", self.home)

    def close(self) -> None:
        run("gpgconf", "--kill", "all", home=self.home)


@pytest.fixture
def commit(demo: GitRepository) -> str:
    return demo.commit({"main.py": "1"}, "unsigned")


def test_commit_of_an_ssh_signer_is_built(git, demo, commit, tmp_path):
    ann, eve = SshSigner(tmp_path / "keys", "ann"), SshSigner(tmp_path / "keys", "eve")
    signers = CommitSigners(f"# who may\n{EVE} {eve.public}\n{ANN} {ann.public}\n")
    files, log = fetch(git, ann.sign(demo, commit), signers)
    assert files == {"main.py": b"1"}
    assert f"the commit is signed by {ANN}" in log


def test_other_ssh_signatures_are_refused(git, demo, commit, tmp_path):
    ann, eve = SshSigner(tmp_path / "keys", "ann"), SshSigner(tmp_path / "keys", "eve")
    only_ann = CommitSigners(f"{ANN} {ann.public}\n")
    assert f"commit {commit} is not signed" in refusal(git, commit, only_ann)
    assert "is not signed by a key of the Secret" in refusal(git, eve.sign(demo, commit), only_ann)
    signed = ann.sign(demo, commit)
    for line in (
        "",
        "no line of this format",
        f'{ANN} namespaces="file" {ann.public}',
        f'{ANN} valid-before="20200101" {ann.public}',
    ):
        refusal(git, signed, CommitSigners(line))
    # The signature of another commit.
    raw = run("git", "--git-dir", str(demo.path), "cat-file", "commit", signed, home=tmp_path)
    forged = raw.replace("\n\nsigned", "\n\nforged") + "\n"
    write = ["git", "--git-dir", str(demo.path), "hash-object", "-t", "commit", "-w", "--stdin"]
    moved = run(*write, home=tmp_path, data=forged.encode())
    run("git", "--git-dir", str(demo.path), "update-ref", "refs/heads/main", moved, home=tmp_path)
    refusal(git, moved, only_ann)


def test_openpgp_signatures(git, demo, commit, tmp_path):
    ann, eve = OpenPgpSigner(tmp_path / "ann", ANN), OpenPgpSigner(tmp_path / "eve", EVE)
    try:
        refusal(git, commit, CommitSigners("", ann.public))
        signed = ann.sign(demo, commit)
        files, log = fetch(git, signed, CommitSigners("", eve.public + "\n" + ann.public))
        assert files == {"main.py": b"1"}
        assert f"the commit is signed by {ANN}" in log
        for keys in ("", "no key", eve.public):
            refusal(git, signed, CommitSigners("", keys))
        # A key that is revoked later.
        revocation = next((tmp_path / "ann" / "openpgp-revocs.d").glob("*.rev")).read_text()
        run(
            "gpg",
            "--batch",
            "--import",
            home=tmp_path / "ann",
            data=revocation.replace(":---", "---").encode(),
        )
        revoked = run("gpg", "--armor", "--export", ANN, home=tmp_path / "ann")
        refusal(git, signed, CommitSigners("", revoked))
    finally:
        ann.close()
        eve.close()


def test_upload_is_refused_where_commits_must_be_signed():
    source = {"archive": {"upload": "upl_1", "sha256": "0" * 64}}
    build = {
        "namespace": "crews",
        "project": "p",
        "source": source,
        "registry": {"prefix": "r"},
        "verify": True,
    }
    environ = {"CREWYARD_BUILD": json.dumps({**build, "base_images": {}})}
    environ |= dict.fromkeys(("CREWYARD_INTERNAL_URL", "CREWYARD_TOKEN", "CREWYARD_DEPLOYMENT"), "http://x")
    with pytest.raises(BuildRefused, match="an upload has no signature") as refused:
        fetch_source(read_settings(environ), BuildLog(out=io.StringIO()))
    assert refused.value.reason == "VerificationFailed"


def test_signer_of_one_kind_does_not_count_for_the_other(git, demo, commit, tmp_path):
    ann = SshSigner(tmp_path / "keys", "ann")
    refusal(git, ann.sign(demo, commit), CommitSigners("", f"{ANN} {ann.public}"))
