"""All targets by name. Called by the fuzzer and by the replay of the corpora."""

from tests.fuzz import addresses, archives, requests, sources, streams
from tests.fuzz.target import FuzzTarget

TARGETS: dict[str, FuzzTarget] = {
    target.name: target
    for module in (archives, addresses, sources, requests, streams)
    for target in module.TARGETS
}
