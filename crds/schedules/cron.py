"""Ticks of a cron expression in a time zone. Pure.

Called by the controller, which creates Runs, and by the API, which checks schedules. A tick is a time
in UTC, in whole minutes. Where the clock skips the hour of a tick, the tick is right after the change;
where the clock repeats the hour, the first of the two counts. An expression whose minute or hour begins
with `*` follows the elapsed time through both changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

DEFAULT_TIME_ZONE = "UTC"
MAX_MISSED_TICKS = 100
"""More are not counted, as in a CronJob."""
MAX_EQUAL_TICKS = 200
"""Ticks that a clock change moves to one moment, and those before the requested time."""
MAX_CLOCK_CHANGE = timedelta(hours=2)
"""Clocks change by an hour or half of one."""
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronInvalid(ValueError):
    """A cron expression or a time zone that cannot be used; `field` is the one to change."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True)
class MissedTicks:
    """Ticks that have passed: the newest one, and how many; `more` if there are more than counted."""

    newest: datetime
    count: int
    more: bool = False


@dataclass(frozen=True)
class Cron:
    """A valid expression of five fields in a time zone."""

    expression: str
    zone: ZoneInfo

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first tick after `moment`; None if there is none within 50 years."""
        ticks = CronSim(self.expression, moment.astimezone(self.zone))
        for _, tick in zip(range(MAX_EQUAL_TICKS), ticks, strict=False):
            # Around a clock change the library may repeat a time or return one before `moment`.
            if (found := tick.astimezone(UTC)) > moment:
                return found
        return None

    def missed(self, first: datetime, now: datetime) -> MissedTicks | None:
        """Return the ticks from `first`, which is one, up to `now`; None if `first` is later."""
        if first > now:
            return None
        newest, count = first, 1
        for tick in self._after(first):
            if tick > now:
                return MissedTicks(newest, count)
            newest, count = tick, count + 1
            if count > MAX_MISSED_TICKS:
                return MissedTicks(self._newest_until(now, newest), MAX_MISSED_TICKS, more=True)
        return MissedTicks(newest, count)

    def _after(self, moment: datetime) -> Iterator[datetime]:
        while (tick := self.next_after(moment)) is not None:
            yield tick
            moment = tick

    def _newest_until(self, now: datetime, known: datetime) -> datetime:
        """Return the newest tick up to `now`, at least `known`."""
        before = CronSim(self.expression, now.astimezone(self.zone), reverse=True)
        newest = known
        # Around a clock change the library may return a time that does not match the expression.
        for tick in self._after(max(known, next(before).astimezone(UTC) - MAX_CLOCK_CHANGE)):
            if tick > now:
                break
            newest = tick
        return newest


@lru_cache(maxsize=4096)
def parse(text: str, time_zone: str = DEFAULT_TIME_ZONE) -> Cron:
    """Return the Cron of an expression or a macro such as `@daily`. Raises CronInvalid."""
    try:
        zone = ZoneInfo(time_zone)
    except (OSError, ValueError, KeyError):
        raise CronInvalid(
            "timeZone",
            f"{time_zone[:64]!r} is not a known time zone; use a name such as Europe/Berlin or UTC",
        ) from None
    expression = _MACROS.get(text, text)
    advice = "use minute, hour, day of the month, month and day of the week, for example 0 7 * * MON-FRI"
    if len(expression.split()) != 5:
        raise CronInvalid("cron", f"{text[:128]!r} does not have five fields; {advice}")
    try:
        cron = Cron(expression, zone)
        never = cron.next_after(datetime(2024, 1, 1, tzinfo=UTC)) is None
    except CronSimError as error:
        problem = str(error)[:1].lower() + str(error)[1:]
        raise CronInvalid("cron", f"{text[:128]!r} is invalid ({problem}); {advice}") from None
    if never:
        raise CronInvalid("cron", f"{text[:128]!r} matches no date; {advice}")
    return cron
