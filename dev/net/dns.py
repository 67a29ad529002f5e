"""DNS for pods: dnsmasq at the bridge address.

It resolves the fixed names of the dev cluster and those of the Services, which `dev.net.service_names` writes
to a hosts file; other queries go to the host's resolvers.
"""

from collections.abc import Iterable
from ipaddress import ip_address

from dev.packages import program_path
from dev.process.probe import TcpProbe
from dev.process.program import ProcessSpec
from dev.settings import BRIDGE_ADDRESS, CLUSTER_DOMAIN, HOST_NAME, REGISTRY_HOST, Settings


def fixed_hosts() -> str:
    """Return the hosts entries that always exist."""
    return f"{BRIDGE_ADDRESS} {HOST_NAME}\n{BRIDGE_ADDRESS} {REGISTRY_HOST}\n"


def service_hosts(services: Iterable[dict[str, object]]) -> str:
    """Return a hosts file with every Service that has an address, sorted; headless ones are omitted."""
    lines = set()
    for service in services:
        metadata, spec = service.get("metadata"), service.get("spec")
        if not isinstance(metadata, dict) or not isinstance(spec, dict):
            continue
        name = f"{metadata['name']}.{metadata['namespace']}.svc.{CLUSTER_DOMAIN}"
        for address in spec.get("clusterIPs") or []:
            if address and address != "None":
                lines.add(f"{ip_address(address)} {name}\n")
    return "".join(sorted(lines))


def process_spec(settings: Settings) -> ProcessSpec:
    """Return the process that `up` starts."""
    fixed = settings.configuration / "dns.hosts"
    argv = (
        program_path("dnsmasq"),
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--pid-file",
        "--log-facility=-",
        # On SIGHUP it reads its files again; they are in a directory that only root can enter.
        "--user=root",
        "--bind-interfaces",
        "--except-interface=lo",
        f"--listen-address={BRIDGE_ADDRESS}",
        "--no-hosts",
        f"--addn-hosts={fixed}",
        f"--addn-hosts={settings.service_hosts}",
        f"--local=/{CLUSTER_DOMAIN}/",
        "--local=/crewyard.internal/",
        "--cache-size=1000",
        "--dns-forward-max=1000",
        # A negative answer must not hide a Service that is created later.
        "--no-negcache",
    )
    return ProcessSpec(
        name="dns", argv=argv, files={fixed: fixed_hosts()}, probe=TcpProbe(BRIDGE_ADDRESS, 53)
    )
