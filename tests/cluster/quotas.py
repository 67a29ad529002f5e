"""ResourceQuotas that refuse objects. Called by tests against the kube-apiserver."""

import asyncio
from typing import Any

from crds.kinds import POD, RUN, Kind
from kube import errors
from kube.client import KubeClient

QUOTA = Kind("", "v1", "resourcequotas", "ResourceQuota")
_RESOURCES = {RUN: "count/runs.crewyard.dev", POD: "pods"}
_SPECS: dict[Kind, dict[str, Any]] = {
    RUN: {"project": "demo"},
    POD: {"containers": [{"name": "main", "image": "example"}]},
}


async def refuse_all(kube: KubeClient, kind: Kind, name: str = "none") -> None:
    """Create a quota of no Runs or no pods; return once the kube-apiserver enforces it.

    The quota's status may show it earlier: the kube-apiserver's admission has a cache of its own.
    """
    hard = {_RESOURCES[kind]: "0"}
    await kube.create(QUOTA, {"metadata": {"name": name}, "spec": {"hard": hard}})
    probe = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "run-probe"}}
    probe["spec"] = _SPECS[kind]
    async with asyncio.timeout(180):
        while True:
            try:
                await kube.call("POST", kind.path(kube.namespace), {"dryRun": "All"}, probe)
            except errors.KubeForbidden as refusal:
                if f"exceeded quota: {name}" in refusal.message:
                    return
            await asyncio.sleep(0.05)
