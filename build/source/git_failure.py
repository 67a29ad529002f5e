"""A fetch that failed, told to the author of the source. Pure. Called by build.source.git_remote and .fetch_git."""

from build.errors import CONTEXT_TOO_LARGE, GIT_AUTH_FAILED, GIT_NOT_FOUND, Infrastructure, Refused
from build.settings import GitSource
from egress.git.credentials import Access
from egress.git.errors import Kind, Trouble, keyscan
from egress.git.repository_url import harmless, shown

_SECRET = "the Secret named by the project's source.git.secretRef"


class Failed(Exception):
    """`trouble` is what happened; the text is libgit2's own, made harmless."""

    def __init__(self, trouble: Trouble, text: str = "") -> None:
        super().__init__(text)
        self.trouble = trouble

    @property
    def may_pass(self) -> bool:
        """Whether the same fetch may well succeed a little later."""
        return self.trouble.kind in (Kind.AWAY, Kind.NO_HOST)


def refusal(failed: Failed, source: GitSource, access: Access, most: int) -> Refused | Infrastructure:
    """What to raise for good. Pure."""
    where, detail = shown(source.url), harmless(failed.trouble.detail)
    match failed.trouble.kind:
        case Kind.TOO_LARGE:
            what = f"{where} sends more than {most} bytes for one commit"
            return Refused(CONTEXT_TOO_LARGE, what, "Keep large files out of the repository.")
        case Kind.ADDRESS:
            return Refused(
                GIT_NOT_FOUND,
                f"{where}: {detail}, and this installation does not fetch from it",
                "Use another address, or ask an administrator to allow it (CREWYARD_NET_ALLOW).",
            )
        case Kind.CERTIFICATE:
            hint = "Put its authority's certificate into the Secret as ca.crt (source.git.secretRef)."
            return Refused(GIT_AUTH_FAILED, f"the certificate of {detail}", hint)
        case Kind.HOST_KEY_UNKNOWN | Kind.HOST_KEY_CHANGED:
            return Refused(
                GIT_AUTH_FAILED,
                f"{where} showed the host key {detail}, which known_hosts does not hold",
                "Compare it with what the server's operator publishes, then put the output of "
                f"`{keyscan(source.url)}` into known_hosts of {_SECRET}.",
            )
        case Kind.IDENTITY:
            hint = f"Put an ed25519, rsa or ecdsa key without a passphrase into identity of {_SECRET}."
            return Refused(GIT_AUTH_FAILED, f"the key for {where} cannot be read", hint)
        case Kind.AUTH:
            what = "refuses the credentials" if access.given else "asks for credentials, or does not exist"
            hint = f"Check {_SECRET}."
            return Refused(GIT_AUTH_FAILED, f"{where} {what}", hint)
        case Kind.COMMIT:
            return Refused(
                GIT_NOT_FOUND,
                f"{where} has no commit {source.commit}",
                "It was never pushed, or was removed by a forced push, or the server gives commits of "
                "branches and tags only: push it to a branch.",
            )
        case Kind.NO_HOST:
            return Refused(GIT_NOT_FOUND, f"there is no host for {where}", "Check the address.")
        case Kind.SHA256:
            hint = "Use a repository whose commit ids have 40 digits."
            return Refused(GIT_NOT_FOUND, f"{where} is a sha256 repository, which is not read", hint)
        case Kind.REPOSITORY | Kind.NO_GIT:
            return Refused(GIT_NOT_FOUND, f"{where} is no git repository ({failed})", "Check the address.")
    return Infrastructure(f"git: {where} could not be read ({failed or 'it took too long'})")
