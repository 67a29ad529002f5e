"""The thirteen seeded bugs: plausible mistakes, each of which breaks a guarantee.

Each takes away one guard, or two where there is a second one behind the first.
Called by the tests of seeded bugs.
"""

from tests.campaign.bugs import fake_runner_scenes, pod_scenes, scenes, warm_scenes
from tests.campaign.bugs.bug import Bug, Edit
from tests.campaign.checks.checker import (
    ACTIVE,
    ARTIFACTS,
    BACKWARD,
    CROWDED,
    DOUBLED,
    EVENTS,
    ORPHAN,
    WRONG_END,
)

BUGS = (
    Bug(
        "pods have a name of their own, not the run's",
        (
            Edit(
                "controller/run/pod.py",
                '    metadata["name"] = run.name\n',
                '    metadata["name"] = f"{run.name}-{int(now * 1000) % 100000}"\n',
            ),
        ),
        scenes.plain,
        frozenset((ORPHAN, WRONG_END)),
    ),
    Bug(
        "an end is decided from memory, and written over any status",
        (
            Edit(
                "controller/run/reconcile.py",
                "if (_is_final(decision) and observed.run.result is None) or starts_again",
                "if starts_again",
            ),
            Edit(
                "controller/runtime/apply.py",
                '"metadata": {**patch.body.get("metadata", {}), "resourceVersion": patch.resource_version},',
                '"metadata": {**patch.body.get("metadata", {})},',
            ),
        ),
        scenes.late_news,
        frozenset((WRONG_END,)),
    ),
    Bug(
        "every pod is granted the run",
        (
            Edit(
                "api/store/index/claims/claim_decision.py",
                'return "the run was given to another pod"',
                'return "same"',
            ),
        ),
        fake_runner_scenes.second_start,
        frozenset((DOUBLED,)),
    ),
    Bug(
        "a claim is known by its pod alone, without the nonce",
        (
            Edit(
                "api/store/index/claims/claim_decision.py",
                "values = (claim.run_uid, claim.pod_uid, claim.nonce)",
                "values = (claim.run_uid, claim.pod_uid, request.nonce)",
            ),
        ),
        fake_runner_scenes.second_start,
        frozenset((DOUBLED,)),
    ),
    Bug(
        "a deleted pod is created again",
        (
            Edit(
                "controller/run/pod_ref.py",
                '    return str(found) if found else None\n\n\ndef is_pod_of',
                '    return str(found) if found and run.phase == "Succeeded" else None\n\n\ndef is_pod_of',
            ),
        ),
        pod_scenes.deleted_pod,
        frozenset((WRONG_END,)),
    ),
    Bug(
        "an ended row changes once more",
        (
            Edit(
                "api/store/index/runs/run_writer.py",
                "return row if is_here and row.uid in (None, run.uid) else None",
                "return row if is_here else None",
            ),
            Edit(
                "api/store/index/runs/run_writer.py",
                "if row.uid and row.version >=",
                "if row.uid == run.uid and row.version >=",
            ),
            Edit(
                "api/store/index/runs/run_writer.py",
                "if row.status in ENDED:",
                "if row.status in ENDED and row.uid == run.uid:",
            ),
        ),
        scenes.again,
        frozenset((BACKWARD,)),
    ),
    Bug(
        "places are counted from memory, and not in the claim",
        (
            Edit(
                "controller/run/admission.py",
                "await self.applier.kube.names(kinds.POD, selector, LIVE_POD_FIELDS)",
                "frozenset(one['metadata']['name'] for one in self.applier.cache.all(kinds.POD))",
            ),
            Edit(
                "api/store/index/claims/claims.py",
                "if plans and not await",
                "if False and plans and not await",
            ),
        ),
        scenes.crowd,
        frozenset((CROWDED,)),
    ),
    Bug(
        "a result is taken before the artifacts are whole",
        (
            Edit(
                "api/internal/result.py",
                'missing["artifacts"] = {"stored": usage.count, "expected": count}',
                "pass",
            ),
        ),
        fake_runner_scenes.early_result,
        frozenset((ARTIFACTS,)),
    ),
    Bug(
        "events that are sent again are stored again",
        (
            Edit("api/store/logs/event_log.py", "if event.seq == seq + 1:", "if event.seq >= 1:"),
        ),
        fake_runner_scenes.repeated_events,
        frozenset((EVENTS,)),
    ),
    Bug(
        "the newest deployment is active, not the one of greatest order",
        (
            Edit(
                "controller/project/activation.py",
                "return max(candidates, key=orders.of, default=None)",
                "return max(candidates, key=creation_order, default=None)",
            ),
        ),
        scenes.rollback,
        frozenset((ACTIVE,)),
    ),
    Bug(
        "a waiting pod is bound twice",
        (
            Edit(
                "controller/run/warm/binding.py",
                "if pod.run is not None or not waiting_pod",
                "if not waiting_pod",
            ),
            # The apiserver refuses a later deadline.
            Edit(
                "controller/pods/waiting.py",
                "return seconds + max(0, math.ceil(waited))",
                "return seconds",
            ),
        ),
        warm_scenes.two_runs,
        frozenset((DOUBLED,)),
    ),
    Bug(
        "a waiting pod keeps its old variables",
        (
            Edit(
                "controller/pods/waiting.py",
                '[metadata.get("uid"), metadata.get("resourceVersion")]',
                '[metadata.get("uid")]',
            ),
        ),
        warm_scenes.changed_variable,
        frozenset((warm_scenes.STALE,)),
    ),
    Bug(
        "a run of an old deployment takes a pod of the active one",
        (
            Edit(
                "controller/run/warm/binding.py",
                "return ready.deployment.uid == source.deployment.uid and imported ==",
                "return imported ==",
            ),
        ),
        warm_scenes.older_deployment,
        frozenset((warm_scenes.STALE,)),
    ),
)  # fmt: skip
QUICK = (
    "every pod is granted the run",
    "a claim is known by its pod alone, without the nonce",
    "a result is taken before the artifacts are whole",
    "events that are sent again are stored again",
)
"""Those that `make test-all` plants; `make campaign` plants all."""
