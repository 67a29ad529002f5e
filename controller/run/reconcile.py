"""One look at one Run: observe, decide, apply. Called by `controller.runtime.worker`."""

from dataclasses import dataclass
from datetime import UTC, datetime

from controller.config import Config
from controller.run.decide import Observed, decide
from controller.run.observe import Observer
from controller.run.requeue import in_vain
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.runtime.decision import Decision
from crds import kinds
from crds.reasons import RUN_ENDS


@dataclass(frozen=True)
class RunReconciler:
    """The reconcile of the kind Run."""

    actor: Actor
    config: Config

    async def reconcile(self, name: str) -> None:
        """Brings one Run a step further. Raises what the apiserver refuses; then it is done again."""
        observer = Observer(self.actor)
        run = await observer.run(name)
        if run is None:
            self.actor.queue.forget(event_map.run(name))
            return
        seen = await observer.whole(run)
        decision = decide(seen, datetime.now(UTC), self.config)
        if (_ends(decision) and seen.run.result is None) or in_vain(seen.run, seen.pod):
            # Memory may lag behind: what nobody reported is decided on what etcd has now.
            fresh = await observer.run(name, live=True)
            if fresh is None:
                return
            seen = await observer.whole(fresh, live=True)
            decision = decide(seen, datetime.now(UTC), self.config)
        await self.actor.perform(kinds.RUN, seen.run.raw, event_map.run(name), decision)
        if _ends(decision):
            self._ended(seen, decision)

    def _ended(self, seen: Observed, decision: Decision) -> None:
        status = decision.status or {}
        seconds = int(status.get("durationMs") or 0) / 1000
        result = str(status["phase"]).lower()
        self.actor.metrics.runs.labels(result).observe(seconds)
        # The reason is one of `RunReason`, whatever a crew said: see `controller.run.outcome`.
        self.actor.metrics.run_ends.labels(result, (status.get("error") or {}).get("reason", "")).inc()
        self.actor.queue.forget(event_map.run(seen.run.name))
        if seen.pod is not None and seen.pod.finished:
            self.actor.known.remove(kinds.POD, seen.pod.name)


def _ends(decision: Decision) -> bool:
    return decision.status is not None and decision.status.get("phase") in RUN_ENDS
