"""A view of one entry of `Project.spec.schedules`. Pure. Called by the controller and the API."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crds import durations
from crds.schedules import cron
from crds.schedules.cron import Cron, CronInvalid

ALLOW, FORBID, REPLACE = "Allow", "Forbid", "Replace"


@dataclass(frozen=True)
class Schedule:
    """A view of a schedule."""

    raw: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name, unique in its Project."""
        return str(self.raw["name"])

    @property
    def time_zone(self) -> str:
        """The time zone of its times."""
        return str(self.raw.get("timeZone") or cron.DEFAULT_TIME_ZONE)

    @property
    def expression(self) -> str:
        """What its ticks follow from: cron and time zone as one text."""
        return f"{self.raw['cron']} {self.time_zone}"

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of its runs."""
        return self.raw.get("labels") or {}

    @property
    def policy(self) -> str:
        """Its concurrency policy."""
        return str(self.raw.get("concurrencyPolicy") or ALLOW)

    @property
    def suspended(self) -> bool:
        """Whether it starts no runs."""
        return bool(self.raw.get("suspend"))

    @property
    def deadline_seconds(self) -> int | None:
        """How late its runs may start; None for any time."""
        text = self.raw.get("startingDeadline")
        return durations.seconds(text) if text else None

    def ticks(self) -> Cron:
        """Return its ticks. Raises CronInvalid."""
        return cron.parse(str(self.raw["cron"]), self.time_zone)

    @property
    def problem(self) -> str | None:
        """Why it has no ticks, naming the field to change; None if it has."""
        try:
            self.ticks()
        except CronInvalid as error:
            return f"schedule {self.name}: {error.field}: {error}"
        return None
