"""Network and admission policies that repeat a list of the code or of a CRD: they have all of it."""

import ipaddress

import pytest
import yaml

from egress import addresses
from tests.unit.manifests import rendering

INTERNET = "0.0.0.0/0"
METADATA = [
    network for network in map(ipaddress.ip_network, addresses._METADATA_ADDRESSES) if network.version == 4
]


def ip_blocks(file):
    for policy in yaml.safe_load_all(file.read_text()):
        for rule in policy["spec"].get("egress", ()):
            yield from (peer["ipBlock"] for peer in rule.get("to", ()) if "ipBlock" in peer)


@pytest.mark.parametrize("file", ["base/network-policies.yaml", "service-egress/service-egress.yaml"])
def test_the_internet_excludes_cloud_metadata(file):
    blocks = [block for block in ip_blocks(rendering.ROOT / "manifests" / file) if block["cidr"] == INTERNET]
    assert blocks and METADATA
    for block in blocks:
        excluded = [ipaddress.ip_network(network) for network in block["except"]]
        missing = [one for one in METADATA if not any(one.subnet_of(network) for network in excluded)]
        assert missing == []
