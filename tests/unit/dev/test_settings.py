"""Location of the state directory, and refused directories."""

from pathlib import Path

import pytest

from dev.errors import DevClusterError
from dev.settings import from_environment


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({"HOME": "/home/ada"}, "/home/ada/.cache/crewyard"),
        ({"HOME": "/home/ada", "XDG_CACHE_HOME": "/var/cache/ada"}, "/var/cache/ada/crewyard"),
        ({"HOME": "/home/ada", "CREWYARD_STATE": "/srv/yard"}, "/srv/yard"),
        ({"HOME": "/home/ada", "CREWYARD_STATE": ""}, "/home/ada/.cache/crewyard"),
    ],
)
def test_state_directory(environment: dict[str, str], state: str) -> None:
    assert from_environment(environment).state == Path(state)


@pytest.mark.parametrize("state", ["yard", "/srv/two words", "/srv/a:b", '/srv/"x"', "/" + "a" * 80])
def test_refused_state_directory_names_the_variable(state: str) -> None:
    with pytest.raises(DevClusterError, match="CREWYARD_STATE"):
        from_environment({"CREWYARD_STATE": state})


def test_everything_lies_below_the_state_directory() -> None:
    settings = from_environment({"CREWYARD_STATE": "/srv/yard"})
    for name in ("bin", "configuration", "pki", "logs", "run", "data", "kubeconfig", "admin_key"):
        assert getattr(settings, name).is_relative_to(settings.state)
