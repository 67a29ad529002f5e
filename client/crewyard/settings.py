"""Address, API key and project: from arguments, the environment, or a file, in this order.

The file is `~/.config/crewyard/config.toml` (`$XDG_CONFIG_HOME`, or `%APPDATA%` on Windows;
`CREWYARD_CONFIG` overrides it): `url = "…"`, `api_key = "…"`, `project = "…"`. `crewyard login` writes
it with mode 0600.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from crewyard.errors import CrewyardError

PROJECT_FILE = Path(".crewyard", "project")
"""In a crew's directory: the name of the project that `deploy` asked for there."""
_PROJECT_NAME = re.compile("[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?")


class SettingsError(CrewyardError):
    """A setting is missing or invalid; the message names it and where to set it."""


@dataclass(frozen=True)
class Settings:
    """Settings of a client. `project` is the default project of commands."""

    url: str
    api_key: str = field(repr=False)
    project: str | None = None


def config_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the configuration file, which may not exist."""
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
        return Path("~")  # a user without a passwd entry, as in containers: there is no file


def read(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the file, {} if there is none. Raises SettingsError if it cannot be read."""
    file = config_path(environment)
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"{file} cannot be read: {error}; correct it, or remove it and log in again"
        ) from None
    wrong = [key for key in ("url", "api_key", "project") if not isinstance(values.get(key, ""), str)]
    if wrong:
        raise SettingsError(f"{file}: {wrong[0]} must be a quoted string")
    return {key: str(values[key]) for key in ("url", "api_key", "project") if values.get(key)}


def remembered_project(directory: Path) -> str | None:
    """Return the project that a crew's directory remembers. Raises SettingsError for an invalid name."""
    file = directory / PROJECT_FILE
    try:
        name = file.read_text("utf-8").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}; correct or remove it") from None
    if not _PROJECT_NAME.fullmatch(name):
        raise SettingsError(f"{file} does not have the name of a project; correct or remove it")
    return name


def remember_project(directory: Path, name: str) -> None:
    """Write the project to a crew's directory, as a file that git ignores. Raises OSError."""
    file = directory / PROJECT_FILE
    file.parent.mkdir(exist_ok=True)
    file.with_name(".gitignore").write_text("*\n", "utf-8")
    file.write_text(f"{name}\n", "utf-8")


def resolve(
    url: str | None = None,
    api_key: str | None = None,
    project: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Return the settings. Raises SettingsError that says which one is missing and how to set it."""
    variables = os.environ if environment is None else environment
    # A key belongs to its address: never send a key from the file to an address from elsewhere.
    try:
        values = read(variables)
    except SettingsError:
        # Address and key are given, so the file is not needed; it may belong to another user's home.
        if not (url or variables.get("CREWYARD_URL")) or not (api_key or variables.get("CREWYARD_API_KEY")):
            raise
        values = {}
    address = url or variables.get("CREWYARD_URL") or values.get("url")
    if not address:
        raise SettingsError("there is no address of Crewyard; set CREWYARD_URL, or run `crewyard login`")
    address = _normalized_url(address)
    same_address = address == _base(str(values.get("url", "")))
    key = api_key or variables.get("CREWYARD_API_KEY") or (values.get("api_key") if same_address else None)
    if not key:
        raise SettingsError(
            f"there is no API key for {address}; set CREWYARD_API_KEY, or run `crewyard login`"
        )
    if not key.isascii() or not key.isprintable() or " " in key:
        raise SettingsError("the API key has whitespace or other invalid characters; copy it again")
    return Settings(address, key, project or variables.get("CREWYARD_PROJECT") or values.get("project"))


def _normalized_url(text: str) -> str:
    """Return the URL as calls extend it. Raises SettingsError, which never shows a password in it."""
    try:
        parts = urlsplit(text)
        valid = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and parts.port != 0
            and text.isprintable()
            and httpx.URL(text).host
        )
    except (ValueError, httpx.InvalidURL):
        valid, parts = False, urlsplit("")
    if parts.username is not None or parts.password is not None or (not valid and "@" in text):
        raise SettingsError("the address contains a user name or password; remove them")
    if not valid or parts.query or parts.fragment or " " in text:
        raise SettingsError(f"{text} is not a URL; give https:// (or http://) and a host")
    return _base(text)


def _base(url: str) -> str:
    """Return the URL without a trailing slash and without `/v1`, with which each call begins."""
    return url.rstrip("/").removesuffix("/v1")
