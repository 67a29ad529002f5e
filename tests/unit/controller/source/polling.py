"""Polls of repositories on a local git server, for the tests of git."""

import pytest

from controller.config import Timing
from controller.git.client import Git
from controller.git.repository import GitProblem, Remote
from crds.installation_limits import InstallationLimits


class PollingConfig:
    """What of the settings Git reads."""

    net_allow, net_deny, timing, limits = ("127.0.0.1/32",), (), Timing(git_timeout=120), InstallationLimits()


async def problem(git: Git, url: str, ref: dict[str, str], **more: str) -> GitProblem:
    """The problem that a look at a remote ends with."""
    with pytest.raises(GitProblem) as raised:
        remote = Remote(url, **more)
        await git.commit(remote, await git.head(remote, ref), "")
    return raised.value
