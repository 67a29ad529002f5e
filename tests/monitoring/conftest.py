"""What the tests of monitoring share with those of the whole: the installation and a built crew."""

import os

import pytest

from tests.monitoring.prometheus import running


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory):
    """A real Prometheus that reads the installed api and controller."""
    if not os.environ.get("KUBECONFIG"):
        pytest.fail('there is no cluster: run `make up` and `eval "$(make -s env)"` first')
    with running(tmp_path_factory.mktemp("prometheus")) as found:
        found.until(
            lambda: (
                {series["metric"]["job"] for series in found.query("up == 1")}
                == {"crewyard-api", "crewyard-controller"}
            ),
            "both are read",
        )
        yield found
