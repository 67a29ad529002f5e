"""The page names each policy in which an installation with other names must change the accounts."""

from tests.testbed.documentation import ROOT


def test_each_policy_that_names_an_account_is_named():
    page = (ROOT / "docs" / "security.md").read_text()
    [paragraph] = [each for each in page.split("\n\n") if each.startswith("If you install the service under")]
    policies = [
        path
        for path in (ROOT / "manifests" / "base").glob("*.yaml")
        if "system:serviceaccount:" in path.read_text()
    ]
    assert len(policies) >= 3
    assert [path.name for path in policies if path.name not in paragraph] == []
