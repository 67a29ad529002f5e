"""What opens a remote. Made by controller.source.poller and build.settings, used by egress.git.remote."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Access:
    """What opens a remote, from the Project's Secret: each empty where it holds none."""

    username: str = ""
    password: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    identity: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)

    @property
    def given(self) -> bool:
        """Whether there is anything that proves who asks."""
        return bool(self.username or self.password or self.bearer or self.identity)
