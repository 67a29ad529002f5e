"""What the campaign's tests share: the seed, a place for logs that a failed test names, the progress."""

import os
import time
from pathlib import Path

import pytest

from tests.campaign import schedule
from tests.campaign.reports.progress import CampaignProgress
from tests.campaign.reports.report import PLACE


def pytest_configure(config: pytest.Config) -> None:
    """Report the progress when figures are requested."""
    place = os.environ.get(PLACE)
    # An xdist worker does not report.
    if place and not hasattr(config, "workerinput"):
        config.pluginmanager.register(CampaignProgress(Path(place), time.monotonic()), "campaign-progress")


@pytest.fixture
def place(tmp_path):
    """A directory for a test bed; printed when the test fails."""
    print(f"logs and ledger are in {tmp_path}")
    return tmp_path


@pytest.fixture
def chosen():
    """Return the seed that was asked for, or the given one."""
    return schedule.seed
