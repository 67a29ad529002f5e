"""Who may do what in the ground's registry. Pure but for the key, which is drawn once.

Everybody may pull. Whoever is named like a repository, or like the beginning of its path, and shows the
password that goes with the name, may push and delete there and nowhere else. Passwords are made of one key;
no list of them is kept. Called by `dev.registry.token_server`, and by all that push.
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

from dev.settings import REGISTRY, Settings

_USER = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_PULL_ACTIONS = ("pull",)
_ALL_ACTIONS = ("pull", "push", "delete")


@dataclass(frozen=True)
class RegistryScope:
    """What a client asks for: actions on one thing, `repository:crews/tides:pull,push`."""

    kind: str
    name: str
    actions: tuple[str, ...]


def parse_scopes(texts: Iterable[str], limit: int = 16) -> tuple[RegistryScope, ...]:
    """The scopes of a request's parameters, at most `most` of them; what is none is left out."""
    scopes = []
    for text in " ".join(texts).split():
        kind, _, name_and_actions = text.partition(":")
        # A repository's name may hold the port of a host.
        name, _, actions = name_and_actions.rpartition(":")
        if kind and name and actions:
            scopes.append(RegistryScope(kind, name, tuple(dict.fromkeys(actions.split(",")))))
    return tuple(scopes[:limit])


def granted(scopes: Iterable[RegistryScope], user: str) -> tuple[RegistryScope, ...]:
    """What `user`, whose password was right (empty: nobody), gets of it. The catalogue is for nobody."""
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
    """The password of `user`, who is named like what may be pushed to."""
    return hmac.new(key.encode(), f"registry\n{user}".encode(), hashlib.sha256).hexdigest()


def password_matches(key: str, user: str, candidate: str) -> bool:
    """Whether the password that was shown is the user's."""
    return _USER.fullmatch(user) is not None and hmac.compare_digest(
        password(key, user).encode(), candidate.encode()
    )


def key_file(settings: Settings) -> Path:
    """Where the key of all passwords lies; only root reads it."""
    return settings.data / "registry-passwords"


def key(settings: Settings) -> str:
    """The key; drawn where there is none yet."""
    file = key_file(settings)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_hex(32))
        fresh.replace(file)
    return file.read_text()


def basic(settings: Settings, user: str) -> str:
    """User and password as the header `Authorization` has them after `Basic`."""
    return base64.b64encode(f"{user}:{password(key(settings), user)}".encode()).decode()


def docker_config(settings: Settings, user: str, host: str = REGISTRY) -> str:
    """The `.dockerconfigjson` with which the repositories below `user` are pushed to."""
    return json.dumps({"auths": {host: {"auth": basic(settings, user)}}})
