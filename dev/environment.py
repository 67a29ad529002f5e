"""Export lines for `eval "$(make -s env)"`."""

import shlex
from collections.abc import Mapping

from dev.net import proxy_bypass
from dev.settings import BRIDGE_ADDRESS, CREWYARD_URL, Settings


def variables(settings: Settings, inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for kubectl, the API and the address of this host for pods.

    PATH contains the tools directory once, however often this is called.
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
    """Return shell export lines, quoted for any value."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
