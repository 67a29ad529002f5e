"""Network and admission policies that repeat a list of the code or of a CRD: they have all of it."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

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


def secret_fields(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield each field that has a `secretRef`, such as `build.push`."""
    for name, field in schema.get("properties", {}).items():
        if name == "secretRef":
            yield ".".join(path)
        yield from secret_fields(field, (*path, name))
        yield from secret_fields(field.get("items", {}), (*path, name))


def test_users_need_the_permission_for_each_secret_of_a_project():
    [version] = yaml.safe_load((rendering.ROOT / "crds" / "project.yaml").read_text())["spec"]["versions"]
    fields = list(secret_fields(version["schema"]["openAPIV3Schema"]["properties"]["spec"]))
    assert "notifications" in fields
    policy, _ = yaml.safe_load_all((rendering.BASE / "users.yaml").read_text())
    expressions = {one["name"]: one["expression"] for one in policy["spec"]["variables"]}
    for variable in ("references", "referencesBefore"):
        named = set(re.findall(r"secretRef\.name \+ ' ([\w.]+)[ ']", expressions[variable]))
        assert named == set(fields), variable
    rule = policy["spec"]["validations"][1]["expression"]
    denied = [expressions[name] for name in re.findall(r"variables\.(denied\w+)\.size\(\) == 0", rule)]
    assert [field for field in fields if not any(f"'{field}'" in one for one in denied)] == []
