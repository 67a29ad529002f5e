"""Holes in what a tenant may spend: pods, bytes, requests (X11)."""

from tests.campaign.bugs.bug import Edit
from tests.security.holes.hole import Hole, hole

STORAGE = "tests/unit/api/internal/test_tenant_storage.py"
DOWNLOADS = "tests/unit/api/http/test_caller_shares.py"
TENANTS = "tests/unit/api/ratelimit/test_tenants.py"
CEILINGS = "tests/unit/controller/pods/test_ceilings.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X11", "a project's amounts have no ceiling", "controller/pods/ceilings.py",
        "elif exceeds(amount, greatest[name]):", "elif False:", CEILINGS,
    ),
    hole(
        "X11", "a project takes any resource", "controller/pods/ceilings.py",
        "if name not in greatest:\n", "if False:\n", CEILINGS,
    ),
    hole(
        "X11", "a project tolerates any taint", "controller/pods/ceilings.py",
        "for toleration in tolerations if allowed.tolerates(toleration)]", "for toleration in tolerations]",
        CEILINGS,
    ),
    hole(
        "X11", "a project selects any node", "controller/pods/ceilings.py",
        "for label, value in labels.items() if allowed.selects(label, value)}",
        "for label, value in labels.items()}",
        CEILINGS,
    ),
    hole(
        "X11", "more keys are more requests", "api/routing/middleware.py",
        "    await _count_for_project(request, caller, services, per_minute)\n", "", TENANTS,
    ),
    hole(
        "X11", "a project's admin gives its project any plan", "api/v1/projects/routes.py",
        "    _check_plan(call, row.as_object().plan)\n", "", TENANTS,
    ),
    hole(
        "X11", "a project's admin gives its keys any plan", "api/v1/keys/routes.py",
        "    await _check_plan(call)\n", "", TENANTS,
    ),
    hole(
        "X11", "keys of a project are not counted", "api/v1/keys/routes.py",
        "        if count >= limit:\n", "        if False:\n", TENANTS,
    ),
    hole(
        "X11", "clients write the address that they are counted by", "api/http/client_address.py",
        "        if not _is_within(current, trusted):\n            return current\n", "",
        "tests/unit/api/http/test_client_address.py",
    ),
    hole(
        "X11", "right signatures wait for wrong ones", "api/routing/middleware.py",
        "    try:\n        return await handler(request)\n    except errors.HttpApiError as error:",
        "    if request[ALLOWANCE].exceeded:\n        raise request[ALLOWANCE].error(time.time())\n"
        "    try:\n        return await handler(request)\n    except errors.HttpApiError as error:",
        TENANTS,
    ),
    hole(
        "X11", "a build lasts as long as its project likes", "crds/limits.py",
        "default_seconds, limits.build_max_seconds)", "default_seconds, 10**9)",
        "tests/unit/controller/deployment/test_pod.py::test_build_deadline_is_capped_by_the_installation",
    ),
    hole(
        "X11", "a run's events are not counted", "api/internal/events.py",
        "await log.append(new_events, budget, request.content_length or MAX_BODY_BYTES)",
        "await log.append(new_events)", STORAGE,
    ),
    hole(
        "X11", "a project's bytes are not counted", "api/internal/storage.py",
        "if limit is None or stored.total + max(new_bytes, 1) <= limit:", "if True:", STORAGE,
    ),
    hole(
        "X11", "a full volume takes events", "api/internal/events.py",
        "        context.store.volume.check_room()\n", "        pass\n", STORAGE,
    ),
    hole(
        "X11", "parallel files are not counted", "api/internal/artifacts.py",
        "arriving = dict(context.arriving_files.get(run, ()))", "arriving: dict[str, int] = {}", STORAGE,
    ),
    hole(
        "X11", "deployments wait without end", "api/v1/deployments/create.py",
        "if waiting >= limit:", "if False:", TENANTS,
    ),
    hole(
        "X11", "a project keeps records without limit", "api/maintenance/retention.py",
        "return min(seconds, most, self", "return min(seconds, self",
        "tests/unit/api/store/test_retention.py",
    ),
    hole(
        "X11", "a plan does not lower the retention of its projects", "api/maintenance/retention.py",
        "most, self.plans.of(project.plan).limits.get(limit, inf))", "most, inf)",
        "tests/unit/api/store/test_retention.py",
    ),
    Hole(
        "X11", "an unreadable commit counts for its host",
        (
            Edit("controller/source/poller.py", "if problem.transient and listed:", "if False:"),
            # There is a second guard: a listing ends the rest of its host.
            Edit("controller/source/poller.py", "            if connected:\n", "            if False:\n"),
        ),
        (
            "tests/unit/controller/source/test_polling.py"
            "::test_unreadable_commit_does_not_delay_the_host",
        ),
    ),
    hole(
        "X11", "all wait for a host as long as those it fails for", "controller/source/host_backoff.py",
        "min(of_host.retry_at, of_host.failed_at + MAX_HOST_INTERVALS * interval)", "of_host.retry_at",
        "tests/unit/controller/source/test_polling.py",
    ),
    hole(
        "X11", "a reader that stops keeps its connection", "api/routing/download.py",
        "async with asyncio.timeout(connection.SEND_TIMEOUT_SECONDS):", "async with asyncio.timeout(None):",
        DOWNLOADS,
    ),
    hole(
        "X11", "downloads of a key are not counted", "api/http/caller_shares.py",
        "if self._taken[caller] >= self._per_caller:", "if False:", DOWNLOADS,
    ),
    hole(
        "X11", "bodies of a key are not counted", "api/http/caller_shares.py",
        "return self._held[caller] + size <= self._per_caller and self._held.total() + size <= self._total",
        "return True", DOWNLOADS,
    ),
    hole(
        "X11", "more keys are more streams", "api/streaming/registry.py",
        "if project and self._of_project[project] >= project_share:", "if False:",
        "tests/unit/api/streaming/test_streams.py::test_more_keys_are_not_more_streams",
    ),
    hole(
        "X11", "a build's log has no end", "api/store/logs/build_logs.py",
        "    if room < len(fresh):\n", "    if False:\n", "tests/unit/api/store/logs/test_build_log_limit.py",
    ),
    hole(
        "X11", "a project has any number of waiting pods", "crds/limits.py",
        "plans.of(project.plan).concurrent_runs, limits.warm_pods)\n", "10**9)\n",
        "tests/unit/crds/test_limits.py::test_waiting_pods_are_limited_by_plan_and_installation",
    ),
)  # fmt: skip
