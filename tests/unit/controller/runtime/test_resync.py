"""Lists of the resync, while events arrive."""

from controller.runtime.resync import RESYNC_LISTS, Resync
from crds import kinds
from kube.client import Listing
from tests.unit.controller.memory_kube import ReconcilerTestbed


async def test_a_list_does_not_bring_back_what_was_deleted_meanwhile(make):
    testbed = ReconcilerTestbed()
    pods = [make.pod(name, f"uid-{name}").raw for name in ("run-a", "run-b")]
    testbed.handlers.on_change(kinds.POD, pods[1])
    deletes = [pods[1]]

    async def pages(*_):
        yield Listing(pods[:1], "500")
        if deletes:
            testbed.handlers.on_delete(kinds.POD, deletes.pop())
        yield Listing(pods[1:], "500")

    testbed.kube.pages = pages
    resync = Resync(testbed.kube, testbed.cache, testbed.handlers, lambda: 0.0)
    (lookup,) = [one for one in RESYNC_LISTS if one.kind == kinds.POD]
    await resync._list(lookup)
    assert [pod["metadata"]["name"] for pod in testbed.cache.all(kinds.POD)] == ["run-a"]
    # The next list counts: an object that left the watched selection may be back.
    await resync._list(lookup)
    assert testbed.cache.count(kinds.POD) == 2
