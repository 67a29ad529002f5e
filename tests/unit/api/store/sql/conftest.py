"""The databases' timeouts as the product has them: these tests are about them."""

import pytest


@pytest.fixture
def patient_databases() -> None:
    """Leave the timeouts as they are."""
