"""Settings of the sign-in: the OpenID provider, and the scopes of its groups. Part of `api.config`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from api.auth.scopes import SCOPES
from api.auth.settings import is_issuer

DEFAULT_SCOPES = "openid profile email groups"
DEFAULT_CLAIM = "groups"
_FIELDS = ("issuer", "client_id", "groups", "groups_claim", "scopes")
_EXAMPLE = (
    '{"issuer": "https://id.example.com", "client_id": "crewyard", '
    '"groups": [{"group": "operators", "scopes": ["admin"]}]}'
)


@dataclass(frozen=True)
class GroupEntry:
    """The scopes of a group's members; `projects` None: in all projects."""

    group: str
    scopes: frozenset[str]
    projects: frozenset[str] | None = None


@dataclass(frozen=True)
class SignInSettings:
    """A provider of the console's users. Without `client_secret`, the client is a public one."""

    issuer: str
    client_id: str
    groups: tuple[GroupEntry, ...]
    groups_claim: str = DEFAULT_CLAIM
    scopes: str = DEFAULT_SCOPES
    client_secret: str = field(default="", repr=False)


def parse_sign_in(text: str, client_secret: str = "") -> SignInSettings | None:
    """Parse CREWYARD_SIGN_IN; None if empty. Raises ValueError with the correct form."""
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"must be a JSON object such as {_EXAMPLE}") from error
    if not isinstance(found, dict) or not set(found) <= set(_FIELDS):
        raise ValueError(f"must be a JSON object with {', '.join(_FIELDS)}, such as {_EXAMPLE}")
    groups = found.get("groups")
    if not isinstance(groups, list) or not groups:
        raise ValueError(f"groups must list groups with their scopes, such as {_EXAMPLE}")
    issuer = _text(found, "issuer")
    if not is_issuer(issuer):
        raise ValueError("issuer must be an https:// URL equal to the iss claim of its tokens")
    return SignInSettings(
        issuer=issuer,
        client_id=_text(found, "client_id"),
        groups=tuple(_entry(index, entry) for index, entry in enumerate(groups)),
        groups_claim=_text(found, "groups_claim", DEFAULT_CLAIM),
        scopes=_text(found, "scopes", DEFAULT_SCOPES),
        client_secret=client_secret,
    )


def _text(found: Mapping[str, Any], name: str, default: str = "") -> str:
    value = found.get(name, default)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be a text, such as {_EXAMPLE}")
    return value


def _entry(index: int, entry: Any) -> GroupEntry:
    if not isinstance(entry, dict) or not set(entry) <= {"group", "scopes", "projects"}:
        raise ValueError(f"groups[{index}] must have group, scopes and, for single projects, projects")
    scopes, projects = entry.get("scopes"), entry.get("projects")
    if not isinstance(scopes, list) or not scopes or not all(scope in SCOPES for scope in scopes):
        raise ValueError(f"groups[{index}].scopes must be some of {', '.join(SCOPES)}")
    if projects is not None and (
        not isinstance(projects, list) or not all(isinstance(name, str) for name in projects)
    ):
        raise ValueError(f"groups[{index}].projects must be a list of names; leave it out for all projects")
    return GroupEntry(
        _text(entry, "group"), frozenset(scopes), None if projects is None else frozenset(projects)
    )
