"""Which pod has which address, as the container runtime said.

A small file for each, so that a restart of the process knows them. Called by the
enforcer. A pod's status would tell the same a second later, when its containers
run already.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address
from pathlib import Path


@dataclass(frozen=True)
class AddressOwner:
    """The pod, and the sandbox that has the address: a pod whose sandbox died gets another one."""

    namespace: str
    name: str
    uid: str
    container: str


class Addresses:
    """Kept in memory and in `directory`, which lies where a reboot empties it."""

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
        """The owners by address."""
        return dict(self._owners)

    def assign(self, address: str, owner: AddressOwner) -> None:
        """Notes an owner; whoever had the address before has lost it."""
        file = self._directory / str(IPv4Address(address))
        fresh = file.with_name(f"{file.name}.new")
        fresh.write_text(json.dumps(asdict(owner)))
        fresh.replace(file)
        self._owners[address] = owner

    def release(self, container: str) -> bool:
        """Forgets what a sandbox had. True if that was anything."""
        released = [address for address, owner in self._owners.items() if owner.container == container]
        for address in released:
            (self._directory / address).unlink(missing_ok=True)
            del self._owners[address]
        return bool(released)
