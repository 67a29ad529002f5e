"""Verification of a commit's signature by the programs that git itself calls: ssh-keygen and gpg.

Called by build.source.fetch_git for projects with `source.git.verify`. Only keys of the project's Secret
count; a key that has expired or was revoked does not.
"""

import subprocess
from pathlib import Path
from typing import Any

from build.errors import VERIFICATION_FAILED, BuildRefused, InfrastructureError
from build.settings import CommitSigners
from egress.git.repository_url import printable

_SSH, _OPENPGP = b"-----BEGIN SSH SIGNATURE-----", b"-----BEGIN PGP SIGNATURE-----"
_TIMEOUT_SECONDS = 60
_INVALID_KEY_STATUS = ("EXPSIG", "EXPKEYSIG", "REVKEYSIG", "BADSIG", "ERRSIG")
_SECRET = "the Secret of the project's source.git.verify.secretRef"


def verify_commit(commit: Any, signers: CommitSigners, directory: Path) -> str:
    """Return who signed the commit. Raises BuildRefused unless it is one of the signers.

    `commit` is pygit2's; `directory` is empty and for this call alone.
    """
    signature, payload = commit.gpg_signature
    if not signature or payload is None:
        raise _refused(commit, "is not signed")
    directory.mkdir(mode=0o700)
    (directory / "signature").write_bytes(signature)
    if signature.startswith(_SSH):
        signer = _verify_ssh(payload, signers.allowed_signers, directory)
    elif signature.startswith(_OPENPGP):
        signer = _verify_openpgp(payload, signers.openpgp_keys, directory)
    else:
        raise _refused(commit, "has a signature that is neither of ssh nor of OpenPGP")
    if signer is None:
        raise _refused(commit, f"is not signed by a key of {_SECRET}, or its signature is wrong")
    return printable(signer)


def _verify_ssh(payload: bytes, allowed_signers: str, directory: Path) -> str | None:
    """Return the principal of allowed_signers whose key signed, as `git verify-commit` finds it."""
    allowed, signature = directory / "allowed_signers", str(directory / "signature")
    allowed.write_text(allowed_signers)
    command = ["ssh-keygen", "-Y", "find-principals", "-f", str(allowed), "-s", signature]
    found = _run(command, directory)
    for principal in found.stdout.decode(errors="replace").splitlines() if found.returncode == 0 else ():
        command = [
            "ssh-keygen",
            "-Y",
            "verify",
            "-n",
            "git",
            "-f",
            str(allowed),
            "-I",
            principal,
            "-s",
            signature,
        ]
        if _run(command, directory, payload).returncode == 0:
            return principal
    return None


def _verify_openpgp(payload: bytes, keys: str, directory: Path) -> str | None:
    """Return the user id of the key that signed."""
    gpg = [
        "gpg",
        "--homedir",
        str(directory),
        "--batch",
        "--no-tty",
        "--no-autostart",
        "--trust-model",
        "always",
    ]
    _run([*gpg, "--import"], directory, keys.encode())
    verify = [*gpg, "--status-fd", "1", "--verify", str(directory / "signature"), "-"]
    done = _run(verify, directory, payload)
    lines = [line.split(" ", 3)[1:] for line in done.stdout.decode(errors="replace").splitlines()]
    words = {line[0] for line in lines if line}
    good = next((line[-1] for line in lines if line[:1] == ["GOODSIG"]), None)
    valid = done.returncode == 0 and "VALIDSIG" in words and not words.intersection(_INVALID_KEY_STATUS)
    return good if valid else None


def _run(command: list[str], directory: Path, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(directory), "LC_ALL": "C"}
    try:
        return subprocess.run(
            command, input=data, env=environment, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InfrastructureError(f"{command[0]} could not verify the commit: {error}") from None


def _refused(commit: Any, problem: str) -> BuildRefused:
    return BuildRefused(
        VERIFICATION_FAILED,
        f"commit {commit.id} {problem}",
        f"Sign it (git commit -S) and push it, or add its signer's key to {_SECRET}.",
    )
