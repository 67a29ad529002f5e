"""Whether a figure grows: the slope of its samples, and how sure it is. Pure.

It is the median of the slopes between all pairs of samples, with the bounds that ranks give (P. K. Sen,
Estimates of the regression coefficient based on Kendall's tau, 1968): a single step, such as the room that a
burst of requests once needed, moves neither much, and what grows all the time is seen however it scatters.

Samples that follow one another closely are alike, and would make it look surer than it is: they are taken
together in blocks, and the slopes are those between the blocks' means. Called by the soak's test.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

BLOCKS = 24
SURE = 2.576
"""Standard errors of the rank beyond which a slope is no chance: 99 %, two-sided."""


@dataclass(frozen=True)
class GrowthSlope:
    """In units an hour, `least` and `most` with 99 % certainty; `span` the hours that it was seen for."""

    per_hour: float
    least: float
    most: float
    span: float
    mean: float

    def grows(self, least: float) -> bool:
        """Whether the growth that is certain amounted to more than `least` while it was watched."""
        return self.least * self.span > least


def fit(samples: Sequence[tuple[float, float]]) -> GrowthSlope:
    """The slope of (seconds, value). Raises ValueError for too few samples."""
    if len(samples) < 2 * BLOCKS:
        raise ValueError(f"{len(samples)} samples are too few; {2 * BLOCKS} are needed")
    size = len(samples) / BLOCKS
    blocks = [samples[round(at * size) : round((at + 1) * size)] for at in range(BLOCKS)]
    times = [statistics.fmean(moment for moment, _ in block) / 3600 for block in blocks]
    values = [statistics.fmean(value for _, value in block) for block in blocks]
    means = list(zip(times, values, strict=True))
    slopes = sorted((two[1] - one[1]) / (two[0] - one[0]) for one, two in combinations(means, 2))
    doubt = SURE * math.sqrt(BLOCKS * (BLOCKS - 1) * (2 * BLOCKS + 5) / 18)
    low = max(0, math.floor((len(slopes) - doubt) / 2))
    span = (samples[-1][0] - samples[0][0]) / 3600
    mean = statistics.fmean(values)
    return GrowthSlope(statistics.median(slopes), slopes[low], slopes[len(slopes) - 1 - low], span, mean)
