"""A crew with a model in the cluster: `make demo MODEL=1`, and what the network policy adds to it."""

import secrets

import pytest

from tests.e2e.model_demo import ModelDemo
from tests.e2e.timeline import Timeline


@pytest.mark.nightly
async def test_a_run_reaches_the_model_that_its_project_names(testbed, capsys):
    """Slow: a build with a package of an index."""
    project = f"e2e-{secrets.token_hex(4)}"
    demo = ModelDemo(testbed, Timeline(), project)
    try:
        await demo.play()
        said = capsys.readouterr().out
        assert "read_tide_table: example: 1.75 m" in said
        assert '"answer": "A scripted answer to: How high is the tide at Reykjavik?"' in said
        # The policy follows the project: without an entry the same crew reaches nothing.
        await demo.crewyard("projects", "set", project, "--no-egress")
        await testbed.kubectl(
            "wait", "networkpolicy", f"crewyard-egress-{project}", "--for=delete", "--timeout=240s"
        )
        blocked = await demo.crewyard("run", project, check=False)
        assert "APITimeoutError" in blocked and "spec.run.egress" in blocked
    finally:
        await testbed.kubectl("delete", "cproj", project, "--ignore-not-found")
