"""Credentials of a git remote. Created by controller.source.poller and build.settings."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class GitCredentials:
    """Credentials and trust anchors from the Project's Secret; a field is empty where it has none."""

    username: str = ""
    password: str = field(default="", repr=False)
    bearer: str = field(default="", repr=False)
    ca: str = field(default="", repr=False)
    identity: str = field(default="", repr=False)
    known_hosts: str = field(default="", repr=False)

    @property
    def authenticates(self) -> bool:
        """Whether any field authenticates the client."""
        return bool(self.username or self.password or self.bearer or self.identity)
