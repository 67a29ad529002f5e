"""Addresses of pods, as reported by the container runtime.

One small file per address, which survives a restart of the process. Called by the enforcer. A pod's status
has the same address a second later, when its containers are already running.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path

from dev import files


@dataclass(frozen=True)
class AddressOwner:
    """The pod and the sandbox that has the address: a pod whose sandbox died gets a new sandbox."""

    namespace: str
    name: str
    uid: str
    container: str


class Addresses:
    """Owners by address, in memory and in `directory`, which a reboot empties."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._owners: dict[str, AddressOwner] = {}
        for path in directory.iterdir():
            try:
                self._owners[str(IPv4Address(path.name))] = AddressOwner(**json.loads(path.read_text()))
            except (ValueError, TypeError):
                path.unlink()

    def owners(self) -> Mapping[str, AddressOwner]:
        """Return the owners by address."""
        return dict(self._owners)

    def assign(self, address: str, owner: AddressOwner) -> None:
        """Record an owner; it replaces an earlier owner of the address."""
        files.write(self._directory / str(IPv4Address(address)), json.dumps(asdict(owner)))
        self._owners[address] = owner

    def release(self, container: str) -> bool:
        """Delete the addresses of a sandbox. Return whether there were any."""
        released = [address for address, owner in self._owners.items() if owner.container == container]
        for address in released:
            (self._directory / address).unlink(missing_ok=True)
            del self._owners[address]
        return bool(released)
