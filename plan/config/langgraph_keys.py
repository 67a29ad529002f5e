"""Keys of langgraph.json that describe LangGraph's own image and server. Called by plan.config.langgraph.

Each is refused with the next step if a crew could miss what it asks for, else it is noted.
"""

import re
from collections.abc import Mapping
from typing import Any

from ..errors import CONFIG_INVALID, PlanError, join_limited

_USED = frozenset(
    {
        "$schema",
        "graphs",
        "dependencies",
        "dockerfile_lines",
        "env",
        "python_version",
        "source",
    }
)
_REFUSED = {
    "pip_config_file": (
        "configures pip, which this build configures itself",
        "Remove it; for a private package index, set the Project's build.secretRef.",
    ),
    "base_image": (
        "names an image; crews are built on the images of this installation",
        "Remove it; the operator can offer another base image (CREWYARD_BASE_IMAGES).",
    ),
}
# The package manager of `"image_distro": "wolfi"`. The other values are releases of Debian.
_APK = re.compile(r"\bapk\b")
# Images of LangGraph's server, in whose place the runner calls the graph.
_SERVER_IMAGES = ("langchain/langgraph-api", "langchain/langgraph-server")


def read_keys(file: str, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return notes on the keys without effect. Raises PlanError(ConfigInvalid) for one that must have it."""
    if values.get("image_distro") == "wolfi" and _APK.search(str(values.get("dockerfile_lines"))):
        raise PlanError(
            CONFIG_INVALID,
            f"{file}: dockerfile_lines use apk of image_distro wolfi, and crews are built on Debian",
            "Install the packages by apt-get there, or name them in [build] packages of crew.toml.",
        )
    unused = []
    for key, value in values.items():
        if key in _USED or not value:
            continue
        server_image = key == "base_image" and str(value).startswith(_SERVER_IMAGES)
        if key in _REFUSED and not server_image:
            problem, hint = _REFUSED[key]
            raise PlanError(CONFIG_INVALID, f"{file}: {key} {problem}", hint)
        unused.append(key)
    return (f"{file}: ignored keys: {join_limited(unused)}",) if unused else ()
