"""Parameters of a test of which `make test` runs some, and `make test-all` the others too."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def daily(values: Iterable[Any], chosen: Collection[Any], name: Any = str) -> list[ParameterSet]:
    """Return the values as parameters; all but the chosen ones are marked `nightly`. Pure.

    `name` returns the id of a value.
    """
    listed = list(values)
    unknown = [one for one in chosen if one not in listed]
    assert not unknown, f"{unknown} are no parameters of the test"
    return [
        pytest.param(one, id=name(one), marks=() if one in chosen else pytest.mark.nightly) for one in listed
    ]
