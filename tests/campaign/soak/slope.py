"""Whether a figure grows: the slope of a straight line through its samples, and how sure it is. Pure.

Samples that follow one another closely are alike, and would make the line look surer than it is: they are
taken together in blocks, and the line goes through the blocks' means. Called by the soak's test.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

BLOCKS = 12
SURE = 3.17
"""Standard errors beyond which a slope is no chance: Student's t, ten degrees of freedom, 99 % two-sided."""


@dataclass(frozen=True)
class Slope:
    """Of a line, in units an hour; `error` is its standard error, `span` the hours that it was seen for."""

    per_hour: float
    error: float
    span: float
    mean: float

    @property
    def certain(self) -> float:
        """How much an hour it grows at least."""
        return max(0.0, self.per_hour - SURE * self.error)

    def grows(self, least: float) -> bool:
        """Whether the growth, beyond its error, amounted to more than `least` while it was watched."""
        return self.certain * self.span > least


def fit(samples: Sequence[tuple[float, float]]) -> Slope:
    """The line through (seconds, value). Raises ValueError for too few samples."""
    if len(samples) < 2 * BLOCKS:
        raise ValueError(f"{len(samples)} samples are too few; {2 * BLOCKS} are needed")
    size = len(samples) / BLOCKS
    blocks = [samples[round(at * size) : round((at + 1) * size)] for at in range(BLOCKS)]
    times = [statistics.fmean(moment for moment, _ in block) / 3600 for block in blocks]
    values = [statistics.fmean(value for _, value in block) for block in blocks]
    middle, mean = statistics.fmean(times), statistics.fmean(values)
    spread = sum((time - middle) ** 2 for time in times)
    pairs = [(time - middle, value - mean) for time, value in zip(times, values, strict=True)]
    per_hour = sum(time * value for time, value in pairs) / spread
    left = sum((value - per_hour * time) ** 2 for time, value in pairs)
    error = math.sqrt(left / (BLOCKS - 2) / spread)
    return Slope(per_hour, error, (samples[-1][0] - samples[0][0]) / 3600, mean)
