"""Build errors for failed git fetches. Pure. Called by build.source.git_remote and build.source.fetch_git."""

from build.errors import CONTEXT_TOO_LARGE, GIT_AUTH_FAILED, GIT_NOT_FOUND, BuildRefused, InfrastructureError
from build.settings import GitSource
from egress.git.credentials import GitCredentials
from egress.git.errors import GitErrorKind, GitFailure, keyscan_command
from egress.git.repository_url import display_url, printable

_SECRET = "the Secret named by the project's source.git.secretRef"


class GitFetchFailed(Exception):
    """A failed fetch: the classified `failure`, and libgit2's message in printable form."""

    def __init__(self, failure: GitFailure, text: str = "") -> None:
        super().__init__(text)
        self.failure = failure

    @property
    def transient(self) -> bool:
        """Whether a retry may succeed."""
        return self.failure.kind in (GitErrorKind.UNAVAILABLE, GitErrorKind.HOST_NOT_FOUND)


def build_error(
    error: GitFetchFailed, source: GitSource, credentials: GitCredentials, max_bytes: int
) -> BuildRefused | InfrastructureError:
    """Return the permanent error for a failed fetch. Pure."""
    repository, detail = display_url(source.url), printable(error.failure.detail)
    match error.failure.kind:
        case GitErrorKind.TOO_LARGE:
            problem = f"{repository} sends more than {max_bytes} bytes for one commit"
            return BuildRefused(CONTEXT_TOO_LARGE, problem, "Keep large files out of the repository.")
        case GitErrorKind.ADDRESS_REFUSED:
            return BuildRefused(
                GIT_NOT_FOUND,
                f"{repository}: {detail}, and this installation does not fetch from it",
                "Use another address, or ask the operator to allow it (CREWYARD_NET_ALLOW).",
            )
        case GitErrorKind.CERTIFICATE:
            hint = "Put the certificate of its CA into the Secret as ca.crt (source.git.secretRef)."
            return BuildRefused(GIT_AUTH_FAILED, f"invalid certificate of {detail}", hint)
        case GitErrorKind.HOST_KEY_UNKNOWN | GitErrorKind.HOST_KEY_CHANGED:
            return BuildRefused(
                GIT_AUTH_FAILED,
                f"{repository} presented the host key {detail}, which is not in known_hosts",
                "Compare it with the key that the server's operator publishes, then put the output of "
                f"`{keyscan_command(source.url)}` into known_hosts of {_SECRET}.",
            )
        case GitErrorKind.IDENTITY:
            hint = f"Put an ed25519, rsa or ecdsa key without a passphrase into identity of {_SECRET}."
            return BuildRefused(GIT_AUTH_FAILED, f"the key for {repository} cannot be read", hint)
        case GitErrorKind.AUTH:
            problem = (
                "rejects the credentials"
                if credentials.authenticates
                else "requires credentials or does not exist"
            )
            hint = f"Check {_SECRET}."
            return BuildRefused(GIT_AUTH_FAILED, f"{repository} {problem}", hint)
        case GitErrorKind.COMMIT_NOT_FOUND:
            return BuildRefused(
                GIT_NOT_FOUND,
                f"{repository} has no commit {source.commit}",
                "It was never pushed, a forced push removed it, or the server serves only commits of "
                "branches and tags. Push it to a branch.",
            )
        case GitErrorKind.HOST_NOT_FOUND:
            return BuildRefused(
                GIT_NOT_FOUND, f"cannot resolve the host of {repository}", "Check the address."
            )
        case GitErrorKind.SHA256:
            hint = "Use a repository whose commit ids have 40 digits."
            return BuildRefused(
                GIT_NOT_FOUND, f"{repository} is a sha256 repository, which is not supported", hint
            )
        case GitErrorKind.REPOSITORY_NOT_FOUND | GitErrorKind.NOT_GIT:
            return BuildRefused(
                GIT_NOT_FOUND, f"{repository} is not a git repository ({error})", "Check the address."
            )
    # At its deadline the relay ends the connection: libgit2's message names that.
    timed_out = error.failure.kind is GitErrorKind.TIMEOUT
    why = "timed out" if timed_out else str(error) or "without a message"
    return InfrastructureError(f"git: {repository} could not be read ({why})")
