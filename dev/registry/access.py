"""Authorization in the dev cluster's registry. Pure but for the key, which is generated once.

Anyone may pull. A user whose name is a repository or a prefix of its path, and who has that name's password,
may push and delete there and nowhere else. Passwords are derived from one key; there is no list of them.
Called by `dev.registry.token_server`, and by everything that pushes.
"""

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dev import files
from dev.settings import REGISTRY, Settings

_USER = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_PULL_ACTIONS = ("pull",)
_ALL_ACTIONS = ("pull", "push", "delete")


@dataclass(frozen=True)
class RegistryScope:
    """Actions that a client requests on one resource: `repository:crews/tides:pull,push`."""

    kind: str
    name: str
    actions: tuple[str, ...]


def parse_scopes(texts: Iterable[str], limit: int = 16) -> tuple[RegistryScope, ...]:
    """Return at most `limit` scopes of a request's parameters; skip malformed ones."""
    scopes = []
    for text in " ".join(texts).split():
        kind, _, name_and_actions = text.partition(":")
        # A repository's name may hold the port of a host.
        name, _, actions = name_and_actions.rpartition(":")
        if kind and name and actions:
            scopes.append(RegistryScope(kind, name, tuple(dict.fromkeys(actions.split(",")))))
    return tuple(scopes[:limit])


def granted(scopes: Iterable[RegistryScope], user: str) -> tuple[RegistryScope, ...]:
    """Return the permitted part of the scopes for `user` (empty: anonymous). Never the catalogue."""
    allowed = []
    for scope in scopes:
        if scope.kind != "repository":
            continue
        own = bool(user) and (scope.name == user or scope.name.startswith(f"{user}/"))
        actions = tuple(
            action for action in scope.actions if action in (_ALL_ACTIONS if own else _PULL_ACTIONS)
        )
        if actions:
            allowed.append(RegistryScope(scope.kind, scope.name, actions))
    return tuple(allowed)


def password(key: str, user: str) -> str:
    """Return the password of `user`, whose name is the repository prefix for pushes."""
    return hmac.new(key.encode(), f"registry\n{user}".encode(), hashlib.sha256).hexdigest()


def password_matches(key: str, user: str, candidate: str) -> bool:
    """Return whether `candidate` is the user's password."""
    return _USER.fullmatch(user) is not None and hmac.compare_digest(
        password(key, user).encode(), candidate.encode()
    )


def key_file(settings: Settings) -> Path:
    """Return the file with the key of all passwords; only root can read it."""
    return settings.data / "registry-passwords"


def key(settings: Settings) -> str:
    """Return the key; generate it if there is none."""
    file = key_file(settings)
    if not file.exists():
        files.write(file, secrets.token_hex(32), files.PRIVATE_MODE)
    return file.read_text()


def basic(settings: Settings, user: str) -> str:
    """Return user and password encoded for the header `Authorization: Basic`."""
    return base64.b64encode(f"{user}:{password(key(settings), user)}".encode()).decode()


def docker_config(settings: Settings, user: str, host: str = REGISTRY) -> str:
    """Return the `.dockerconfigjson` for pushes to the repositories below `user`."""
    return json.dumps({"auths": {host: {"auth": basic(settings, user)}}})
