"""The lines that `eval "$(make -s env)"` reads."""

import shlex
from collections.abc import Mapping

from dev.net import proxy_bypass
from dev.settings import BRIDGE_ADDRESS, CREWYARD_URL, Settings


def variables(settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a shell needs for kubectl and the facade, and where pods reach a server of this host.

    PATH gains our directory once, however often asked.
    """
    bin_directory = str(settings.bin)
    other_entries = [
        entry for entry in inherited.get("PATH", "").split(":") if entry and entry != bin_directory
    ]
    values = {
        "CREWYARD_STATE": str(settings.state),
        "KUBECONFIG": str(settings.kubeconfig),
        "PATH": ":".join([bin_directory, *other_entries]),
        "CREWYARD_URL": CREWYARD_URL,
        "CREWYARD_HOST_ADDRESS": BRIDGE_ADDRESS,
    }
    values |= proxy_bypass.variables(inherited)
    if settings.admin_key.exists():
        values["CREWYARD_API_KEY"] = settings.admin_key.read_text().strip()
    return values


def exports(values: Mapping[str, str]) -> str:
    """Shell lines, safe for any value."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
