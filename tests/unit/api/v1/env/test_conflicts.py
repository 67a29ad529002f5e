"""Writes that another client's change makes fail."""

import pytest

from api.v1 import conflicts
from kube import errors


@pytest.fixture
def pauses(monkeypatch):
    """Return the seconds of all pauses, none of which takes time."""
    seconds = []

    async def sleep(pause):
        seconds.append(pause)

    monkeypatch.setattr(conflicts.asyncio, "sleep", sleep)
    return seconds


def failing(count, error):
    """Return a write that fails so often before it returns its number of attempts."""
    attempts = []

    async def write():
        attempts.append(error)
        if len(attempts) <= count:
            raise error
        return len(attempts)

    return write, attempts


@pytest.mark.parametrize("kind", [errors.KubeConflict, errors.AlreadyExists, errors.KubeNotFound])
async def test_a_write_pauses_after_each_conflict(pauses, kind):
    write, _ = failing(conflicts.MAX_ATTEMPTS - 1, kind(409, "Conflict", "no"))
    assert await conflicts.repeated(write) == conflicts.MAX_ATTEMPTS
    assert len(pauses) == conflicts.MAX_ATTEMPTS - 1
    assert all(0 <= pause <= conflicts.LONGEST_PAUSE_SECONDS for pause in pauses)
    assert len(set(pauses)) > 1


async def test_the_last_conflict_is_raised(pauses):
    write, attempts = failing(conflicts.MAX_ATTEMPTS, errors.KubeConflict(409, "Conflict", "no"))
    with pytest.raises(errors.KubeConflict):
        await conflicts.repeated(write)
    assert len(attempts) == conflicts.MAX_ATTEMPTS


async def test_other_errors_are_raised_at_once(pauses):
    write, attempts = failing(1, errors.Invalid(422, "Invalid", "no"))
    with pytest.raises(errors.Invalid):
        await conflicts.repeated(write)
    assert (len(attempts), pauses) == (1, [])
