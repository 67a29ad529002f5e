"""Options of an installation on the current context's cluster. Read once from the environment."""

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.errors import DevClusterError

PYTHON = "3.11"
OFFICIAL_IMAGES = {version: f"python:{version}-slim" for version in ("3.11", "3.12", "3.13", "3.14")}
BASE_IMAGE = OFFICIAL_IMAGES[PYTHON]
PULL_SECRET = "crewyard-registry"
FORWARDED_PORT = 30081
_MAX_REGISTRY_CONFIG_BYTES = 64 * 1024


@dataclass(frozen=True)
class InstallOptions:
    """The options; empty text if unset. `registry_auth` is the text of a docker config.json."""

    registry: str
    registry_auth: str = ""
    insecure: bool = False
    image: str = ""
    base_image: str = BASE_IMAGE
    kaniko_image: str = ""
    public_url: str = ""
    storage_class: str = ""
    net_deny: str = ""
    host_address: str = ""
    egress: tuple[str, ...] = ()
    wait: bool = True

    @property
    def url(self) -> str:
        """The API server's URL for this machine: its public one, or a forwarded port."""
        return self.public_url or f"http://127.0.0.1:{FORWARDED_PORT}"


def from_environment(environment: Mapping[str, str]) -> InstallOptions:
    """Return the options. Raises DevClusterError that names the missing or invalid variable."""
    registry = environment.get("CREWYARD_REGISTRY", "").strip().rstrip("/")
    if not registry:
        raise DevClusterError(
            "CREWYARD_REGISTRY is not set. Set it to the registry for images of crews and the service, "
            "as host[:port][/prefix]. Its credentials: CREWYARD_REGISTRY_CONFIG=<a docker config.json>."
        )
    if "://" in registry or any(character.isspace() for character in registry):
        raise DevClusterError(
            f"CREWYARD_REGISTRY is {registry!r}; use host[:port][/prefix] without a scheme."
        )
    image = environment.get("CREWYARD_IMAGE", "").strip()
    if image and "@sha256:" not in image:
        raise DevClusterError(f"CREWYARD_IMAGE is {image!r}; use a reference by digest: repository@sha256:…")
    return InstallOptions(
        registry=registry,
        registry_auth=_auth(environment.get("CREWYARD_REGISTRY_CONFIG", "")),
        insecure=_flag(environment, "CREWYARD_REGISTRY_INSECURE", False),
        image=image,
        base_image=environment.get("CREWYARD_BASE_IMAGE") or BASE_IMAGE,
        kaniko_image=environment.get("CREWYARD_KANIKO_IMAGE", ""),
        public_url=environment.get("CREWYARD_PUBLIC_URL", "").rstrip("/"),
        storage_class=environment.get("CREWYARD_STORAGE_CLASS", ""),
        net_deny=environment.get("CREWYARD_NET_DENY", ""),
        host_address=environment.get("CREWYARD_HOST_ADDRESS", ""),
        egress=_networks(environment.get("CREWYARD_EGRESS", "")),
        wait=_flag(environment, "CREWYARD_WAIT", True),
    )


def _flag(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name, "").strip().lower()
    if text not in ("", "0", "1", "true", "false"):
        raise DevClusterError(f"{name} is {text!r}; set it to 1 or 0.")
    return default if not text else text in ("1", "true")


def _networks(text: str) -> tuple[str, ...]:
    networks = tuple(network.strip() for network in text.split(",") if network.strip())
    for network in networks:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise DevClusterError(f"CREWYARD_EGRESS: {error}. Write networks such as 10.1.2.0/24.") from error
    return networks


def _auth(path: str) -> str:
    if not path:
        return ""
    try:
        with Path(path).open() as file:
            text = file.read(_MAX_REGISTRY_CONFIG_BYTES + 1)
        if len(text) > _MAX_REGISTRY_CONFIG_BYTES or not isinstance(json.loads(text).get("auths"), dict):
            raise ValueError("it has no object `auths`")
    except (OSError, ValueError, AttributeError) as error:
        raise DevClusterError(f"CREWYARD_REGISTRY_CONFIG={path} cannot be used: {error}") from error
    return text


def _base_images(options: InstallOptions) -> dict[str, str]:
    """Return the official images, or the one of the user: who names it may reach no other."""
    return OFFICIAL_IMAGES if options.base_image == BASE_IMAGE else {PYTHON: options.base_image}


def config_values(options: InstallOptions, image: str) -> dict[str, str]:
    """Return the entries of ConfigMap `crewyard-config` that differ from the base's."""
    values = {
        "CREWYARD_SERVICE_IMAGE": image,
        "CREWYARD_BASE_IMAGES": json.dumps(_base_images(options)),
        "CREWYARD_REGISTRY": options.registry,
        "CREWYARD_REGISTRY_INSECURE": "true" if options.insecure else "false",
        "CREWYARD_PUBLIC_URL": options.url,
    }
    if options.registry_auth:
        values["CREWYARD_REGISTRY_SECRET"] = PULL_SECRET
    if options.kaniko_image:
        values["CREWYARD_KANIKO_IMAGE"] = options.kaniko_image
    if options.net_deny:
        values["CREWYARD_NET_DENY"] = options.net_deny
    if options.host_address:
        values["CREWYARD_NET_ALLOW"] = f"{options.host_address}/32"
    return values
