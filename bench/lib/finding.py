"""One measured thing: what it is, its unit, its numbers. Made by measurements, written by __main__."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.lib.statistics import Pair, compare, spread


@dataclass(frozen=True)
class Finding:
    """Pairs (peer, ours), or values of ours alone, or a plain fact; `peer` says what ours is held against."""

    code: str
    what: str
    unit: str = "s"
    pairs: Sequence[Pair] = ()
    values: Sequence[float] = ()
    peer: str = ""
    fact: str = ""

    def line(self) -> str:
        """For people."""
        said = [self.fact] if self.fact else []
        if self.pairs:
            said.append(compare(self.pairs).line(self.unit))
        if self.values:
            said.append(spread(self.values, self.unit))
        against = f" (peer: {self.peer})" if self.peer else ""
        return f"{self.code} {self.what}{against}: {'; '.join(said)}"

    def record(self) -> dict[str, Any]:
        """For the result file, with every number."""
        found = {key: value for key, value in asdict(self).items() if value}
        if self.pairs:
            found["comparison"] = asdict(compare(self.pairs))
        return found
