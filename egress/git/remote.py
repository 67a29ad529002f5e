"""pygit2 on one remote: through a way out of ours, with the remote's credentials, and with nothing else.

Called by controller.git.remote and build.source.git_remote, which give meaning to what goes wrong.
"""

from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import ConfigLevel, Option

from egress.addresses import Rules
from egress.git.credentials import Access
from egress.git.known_hosts import line, pinned
from egress.git.repository_url import parse
from egress.relay.http_relay import Gate
from egress.relay.relay import Way
from egress.relay.ssh_relay import Tunnel

# No configuration of the machine applies: it could name other servers (insteadOf) and proxies. Here, and not
# where it is needed, because libgit2 lets nobody change it while other threads work.
for _level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
    pygit2.settings.search_path[_level] = ""


class AccessDenied(Exception):
    """The remote asks for what it was not given, or does not take it."""


class Oversized(Exception):
    """The remote sent more than it may."""


def way(url: str, rules: Rules, access: Access, **limits: Any) -> Way:
    """The way out to `url`; `limits` are those of Way. Raises ValueError for an address that is not read."""
    if parse(url).scheme == "ssh":
        return Tunnel(rules, home=url, **limits)
    return Gate(rules, home=url, ca=access.ca, **limits)


def confine(home: Path, connect_seconds: float, silence_seconds: float, tunnel: Way, access: Access) -> None:
    """Sets libgit2 of this whole process up for one remote: its times and, for ssh, a home of its own.

    With a Tunnel, `home` gets a known_hosts file with the keys that are pinned for the far server: libgit2
    asks the server for a key of their kinds, and compares.
    """
    pygit2.settings.server_connect_timeout = int(connect_seconds * 1000)
    pygit2.settings.server_timeout = int(silence_seconds * 1000)
    if isinstance(tunnel, Tunnel):
        place = tunnel.place
        lines = [
            line("127.0.0.1", tunnel.port, key) for key in pinned(access.known_hosts, place.host, place.port)
        ]
        directory = home / ".ssh"
        directory.mkdir(parents=True)
        (directory / "known_hosts").write_text("".join(lines))
        pygit2.option(Option.SET_HOMEDIR, str(home))


def callbacks(url: str, access: Access, through: Way, most: int = 1 << 40) -> pygit2.RemoteCallbacks:
    """What libgit2 asks while it talks to `url`. Ends with AccessDenied, or Oversized above `most` bytes."""
    place = parse(url)
    keys = pinned(access.known_hosts, place.host, place.port) if place.scheme == "ssh" else ()

    class Callbacks(pygit2.RemoteCallbacks):  # type: ignore[misc,unused-ignore]
        asked = False

        def credentials(self, url: str, username_from_url: str | None, allowed_types: Any) -> Any:
            # The same answer to a second question would be a loop.
            if self.asked:
                raise AccessDenied("authentication failed")
            self.asked = True
            if place.scheme == "ssh":
                if not access.identity:
                    raise AccessDenied("authentication needs a key")
                user = username_from_url or place.user or "git"
                return pygit2.KeypairFromMemory(user, None, _key(access.identity), "")
            if not (access.username or access.password):
                raise AccessDenied("authentication is required")
            # Servers that take a token as the password want a name beside it, whichever it is.
            return pygit2.UserPass(access.username or "git", access.password)

        def custom_headers(self) -> list[str] | None:
            bearer = access.bearer if place.scheme != "ssh" else ""
            if not bearer.isprintable() or not bearer.isascii():
                raise AccessDenied("authentication by a token of several lines")
            return [f"Authorization: Bearer {bearer}"] if bearer else None

        def certificate_check(self, certificate: None, valid: bool, host: bytes) -> bool:
            # Without this pygit2 takes every host key. Both must agree: libgit2, and what passed the tunnel.
            return bool(valid) and (not isinstance(through, Tunnel) or through.shown in keys)

        def transfer_progress(self, stats: Any) -> None:
            if stats.received_bytes > most:
                raise Oversized

    return Callbacks()


def _key(text: str) -> str:
    """A private key as it was written: Secrets often come with other line ends, or without the last one."""
    return "\n".join(text.strip().splitlines()) + "\n"
