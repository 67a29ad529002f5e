"""What the campaign's tests share: the seed, and a place for logs that a failed test names."""

import pytest

from tests.campaign import schedule


@pytest.fixture
def place(tmp_path):
    """A directory for a yard; told where the test fails."""
    print(f"logs and ledger are in {tmp_path}")
    return tmp_path


@pytest.fixture
def chosen():
    """Gives the seed that was asked for, or the given one."""
    return schedule.seed
