"""Where the service is and who is calling: from arguments, the environment, or a file, in this order.

The file is `~/.config/crewyard/config.toml` (`$XDG_CONFIG_HOME`, or `%APPDATA%` on Windows;
`CREWYARD_CONFIG` names another one): `url = "…"`, `api_key = "…"`, `project = "…"`. `crewyard login` writes
it, readable for its owner alone.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from crewyard.errors import CrewyardError


class SettingsProblem(CrewyardError):
    """A setting is missing or wrong; the text says which, and where it can be given."""


@dataclass(frozen=True)
class Settings:
    """What a client needs. `project` is the one that is meant where none is said."""

    url: str
    api_key: str = field(repr=False)
    project: str | None = None


def path(environment: Mapping[str, str]) -> Path:
    """Where the file is, or would be."""
    if named := environment.get("CREWYARD_CONFIG"):
        return Path(named)
    if os.name == "nt" and environment.get("APPDATA"):
        return Path(environment["APPDATA"]) / "crewyard" / "config.toml"
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else _home() / ".config") / "crewyard" / "config.toml"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path("~")  # An unnamed user in a container: no file is there.


def read(environment: Mapping[str, str]) -> dict[str, str]:
    """What the file says; empty where there is none. Raises SettingsProblem where it cannot be read."""
    place = path(environment)
    try:
        found = tomllib.loads(place.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsProblem(
            f"{place} cannot be read: {error}; correct it, or remove it and log in again"
        ) from None
    wrong = [key for key in ("url", "api_key", "project") if not isinstance(found.get(key, ""), str)]
    if wrong:
        raise SettingsProblem(f"{place}: {wrong[0]} must be a text in quotes")
    return {key: str(found[key]) for key in ("url", "api_key", "project") if found.get(key)}


def resolve(
    url: str | None = None,
    api_key: str | None = None,
    project: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings. Raises SettingsProblem that says what is missing and how to give it."""
    given = os.environ if environment is None else environment
    # A key belongs to its address: one from the file is not sent to an address from elsewhere.
    try:
        there = read(given)
    except SettingsProblem:
        # Nobody needs the file who says all: it may be of another user, whose home this one has.
        if not (url or given.get("CREWYARD_URL")) or not (api_key or given.get("CREWYARD_API_KEY")):
            raise
        there = {}
    found_url = url or given.get("CREWYARD_URL") or there.get("url")
    if not found_url:
        raise SettingsProblem("where is Crewyard? Set CREWYARD_URL, or run `crewyard login`")
    found_url = _address(found_url)
    same = found_url == str(there.get("url", "")).rstrip("/")
    key = api_key or given.get("CREWYARD_API_KEY") or (there.get("api_key") if same else None)
    if not key:
        raise SettingsProblem(
            f"there is no API key for {found_url}; set CREWYARD_API_KEY, or run `crewyard login`"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsProblem("the API key has white space or other letters in it that no key has")
    return Settings(found_url, key, project or given.get("CREWYARD_PROJECT") or there.get("project"))


def _address(text: str) -> str:
    """The address without a slash at its end. Raises SettingsProblem, which never tells a password in it."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and text.isprintable()
    except ValueError:
        good, parts = False, urlsplit("")
    if parts.username is not None or parts.password is not None:
        raise SettingsProblem("the address has a user or a password in it; leave them out")
    if not good or parts.query or parts.fragment or " " in text:
        raise SettingsProblem(f"{text} is no address; it begins with https:// (or http://) and a host")
    return text.rstrip("/")
