"""What the campaign's tests share: the seed, a place for logs that a failed test names, the progress."""

import os
import time
from pathlib import Path

import pytest

from tests.campaign import schedule
from tests.campaign.progress import CampaignProgress
from tests.campaign.report import PLACE


def pytest_configure(config: pytest.Config) -> None:
    """Tells how far it is, where somebody wants the figures."""
    place = os.environ.get(PLACE)
    # A worker of several has nobody to tell.
    if place and not hasattr(config, "workerinput"):
        config.pluginmanager.register(CampaignProgress(Path(place), time.monotonic()), "campaign-progress")


@pytest.fixture
def place(tmp_path):
    """A directory for a test bed; told where the test fails."""
    print(f"logs and ledger are in {tmp_path}")
    return tmp_path


@pytest.fixture
def chosen():
    """Gives the seed that was asked for, or the given one."""
    return schedule.seed
