"""The URL of a submodule, as git resolves it. Pure. Called by build.source.submodules.fetches."""

import re
from urllib.parse import urlsplit, urlunsplit

from egress.git.credentials import GitCredentials
from egress.git.repository_url import parse

_SCP_FORM = re.compile(r"(?:([A-Za-z0-9_][\w.+-]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*):([^:].*)")


def resolve_url(url: str, parent: str) -> str:
    """Return the absolute URL of a submodule of the repository at `parent`. Raises ValueError.

    With a parent at http(s), a URL for ssh to the same host becomes one like the parent's: the form
    `git@host:path` is common in repositories that everybody may read without a key.
    """
    if url.startswith(("./", "../")):
        return _relative(url, parent)
    server = parse(parent)
    scp = None if "://" in url else _SCP_FORM.fullmatch(url)
    if scp:
        url = f"ssh://{scp[1] or 'git'}@{scp[2]}/{scp[3].lstrip('/')}"
    target = parse(url)
    if ".." in target.path.split("/"):
        raise ValueError("the path of the URL has '..'")
    if target.scheme == "ssh" and server.scheme != "ssh" and target.host == server.host:
        parts = urlsplit(parent)
        return urlunsplit((parts.scheme, parts.netloc, target.path, "", ""))
    return url


def credentials_for(url: str, source_url: str, credentials: GitCredentials) -> GitCredentials:
    """Return the credentials of the source for `url`: on another server only what it is trusted by."""
    target, source = parse(url), parse(source_url)
    if (target.scheme, target.host, target.port) == (source.scheme, source.host, source.port):
        return credentials
    return GitCredentials(ca=credentials.ca, known_hosts=credentials.known_hosts)


def _relative(url: str, parent: str) -> str:
    parts = urlsplit(parent)
    segments = parts.path.rstrip("/").split("/")
    for segment in url.rstrip("/").split("/"):
        if segment == "..":
            if len(segments) < 2:
                raise ValueError(f"{url!r} leads above the server of the repository")
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    resolved = urlunsplit((parts.scheme, parts.netloc, "/".join(segments), "", ""))
    parse(resolved)
    return resolved
