"""pygit2 against one remote: through an egress relay, with its credentials and no other configuration.

Called by controller.git.remote and build.source.git_remote, which translate the errors.
"""

from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import ConfigLevel, Option

from egress.addresses import AddressRules
from egress.git.credentials import GitCredentials
from egress.git.known_hosts import known_hosts_line, pinned_keys
from egress.git.repository_url import parse
from egress.relay.http_relay import HttpRelay
from egress.relay.relay import EgressRelay
from egress.relay.ssh_relay import SshRelay

# Ignore the machine's git configuration, which could name other servers (insteadOf) and proxies.
# Set on import, because libgit2 does not allow a change while other threads use it.
for _level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
    pygit2.settings.search_path[_level] = ""


class AccessDenied(Exception):
    """The remote requires credentials that are missing, or rejects those it got."""


class TransferTooLarge(Exception):
    """The remote sent more than the allowed number of bytes."""


def relay_for(url: str, rules: AddressRules, credentials: GitCredentials, **limits: Any) -> EgressRelay:
    """Return a relay for `url`; `limits` go to EgressRelay. Raises ValueError for an unsupported URL."""
    if parse(url).scheme == "ssh":
        return SshRelay(rules, repository_url=url, **limits)
    return HttpRelay(rules, repository_url=url, ca=credentials.ca, **limits)


def configure_libgit2(
    home: Path,
    connect_seconds: float,
    silence_seconds: float,
    relay: EgressRelay,
    credentials: GitCredentials,
) -> None:
    """Configure the libgit2 of this process for one remote: timeouts and, for ssh, a home directory.

    With an SshRelay, write the pinned host keys of the server to a known_hosts file below `home`: libgit2
    then requests a key of one of these algorithms and compares it.
    """
    pygit2.settings.server_connect_timeout = int(connect_seconds * 1000)
    pygit2.settings.server_timeout = int(silence_seconds * 1000)
    if isinstance(relay, SshRelay):
        server = relay.server
        lines = [
            known_hosts_line("127.0.0.1", relay.port, key)
            for key in pinned_keys(credentials.known_hosts, server.host, server.port)
        ]
        directory = home / ".ssh"
        directory.mkdir(parents=True)
        (directory / "known_hosts").write_text("".join(lines))
        pygit2.option(Option.SET_HOMEDIR, str(home))


def callbacks(
    url: str, credentials: GitCredentials, relay: EgressRelay, max_bytes: int = 1 << 40
) -> pygit2.RemoteCallbacks:
    """Return libgit2's callbacks for `url`. Raise AccessDenied or, above `max_bytes`, TransferTooLarge."""
    server = parse(url)
    keys = pinned_keys(credentials.known_hosts, server.host, server.port) if server.scheme == "ssh" else ()

    class Callbacks(pygit2.RemoteCallbacks):  # type: ignore[misc,unused-ignore]
        asked = False

        def credentials(self, url: str, username_from_url: str | None, allowed_types: Any) -> Any:
            # Answering a second request with the same credentials would loop.
            if self.asked:
                raise AccessDenied("authentication failed")
            self.asked = True
            if server.scheme == "ssh":
                if not credentials.identity:
                    raise AccessDenied("authentication needs a key")
                user = username_from_url or server.user or "git"
                return pygit2.KeypairFromMemory(user, None, _normalize_key(credentials.identity), "")
            if not (credentials.username or credentials.password):
                raise AccessDenied("authentication is required")
            # Servers that accept a token as the password require some user name.
            return pygit2.UserPass(credentials.username or "git", credentials.password)

        def custom_headers(self) -> list[str] | None:
            bearer = credentials.bearer if server.scheme != "ssh" else ""
            if not bearer.isprintable() or not bearer.isascii():
                raise AccessDenied("authentication by a token of several lines")
            return [f"Authorization: Bearer {bearer}"] if bearer else None

        def certificate_check(self, certificate: None, valid: bool, host: bytes) -> bool:
            # Without this pygit2 accepts every host key. Both libgit2 and the relay must see a pinned key.
            return bool(valid) and (not isinstance(relay, SshRelay) or relay.host_key in keys)

        def transfer_progress(self, stats: Any) -> None:
            if stats.received_bytes > max_bytes:
                raise TransferTooLarge

    return Callbacks()


def _normalize_key(text: str) -> str:
    """Return a private key with LF line ends and a final newline, which values in Secrets often lack."""
    return "\n".join(text.strip().splitlines()) + "\n"
