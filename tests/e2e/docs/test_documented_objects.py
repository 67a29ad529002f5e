"""Every object that the documentation shows is one that the apiserver takes."""

import json

import pytest
import yaml

from tests.testbed.documentation import PAGES, blocks, name_of

GROUP = "crewyard.dev/v1alpha1"
TAKEN = {(GROUP, "Project"), (GROUP, "Deployment"), (GROUP, "Run"), ("v1", "Pod"), ("batch/v1", "CronJob")}


def shown():
    """The objects of all pages; of a part that has only `spec`, the Project it belongs to."""
    for page in PAGES:
        for block in blocks(page.read_text()):
            if block.language != "yaml":
                continue
            for found in yaml.safe_load_all(block.text):
                if isinstance(found, dict) and list(found) == ["spec"]:
                    found = {"apiVersion": GROUP, "kind": "Project", "metadata": {"name": "shown"}, **found}
                if isinstance(found, dict) and (found.get("apiVersion"), found.get("kind")) in TAKEN:
                    yield pytest.param(found, id=f"{name_of(page)}:{block.line}")


@pytest.mark.parametrize("found", list(shown()))
async def test_example_is_accepted(found, testbed):
    # Beside an object of that name a creation would be refused; only its form is asked about.
    namespace = found["metadata"].get("namespace", "crews")
    found["metadata"] = {"generateName": f"{found['kind'][:3].lower()}-"}
    await testbed.kubectl("-n", namespace, "create", "--dry-run=server", "-f", "-", stdin=json.dumps(found))
