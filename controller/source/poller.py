"""Poller of Projects' git repositories: schedule, credentials and new revisions.

Separate from the Project's other reconciles, so a slow remote delays no rollback. An idle Project
costs at most one listing of heads per interval, shared with Projects of the same remote, and no
write. Called by `controller.runtime.worker` under the key `sources/<project>`.
"""

import time
from dataclasses import dataclass, field, replace

from controller.config import ControllerConfig
from controller.git.client import Git
from controller.git.repository import CommitInfo, GitProblem, Remote, RemoteHead
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.source.credentials import remote_of
from controller.source.host_backoff import HostBackoff
from controller.source.host_limits import HostSlots
from controller.source.observed import ObservedSource, ObservedSources, SourceProblem, unobserved
from controller.source.schedule import PUSH_RETRY_SECONDS, PollSchedule
from controller.source.singleflight import SingleFlight
from crds import durations, kinds
from crds.names import ANNOTATION_PUSHED_AT
from crds.objects import Project

SLOT_RETRY_SECONDS = 30.0
"""Retry interval of a poll that waits for a slot; `release` usually wakes it before."""
COMMIT_PROBLEM_SECONDS = {"PathNotFound": 600.0, "RepositoryTooLarge": 600.0}
"""Problems that belong to a commit, and the seconds for which its fetch is not repeated."""
MAX_SHARED_LISTINGS = 10_000
MAX_SHARED_COMMITS = 1_000


@dataclass(frozen=True)
class SourceReconciler:
    """Reconciler of a Project's repository."""

    applier: Applier
    config: ControllerConfig
    git: Git
    observed_sources: ObservedSources
    schedule: PollSchedule = field(default_factory=PollSchedule)
    slots: HostSlots = field(default_factory=HostSlots)
    heads: SingleFlight[RemoteHead] = field(
        default_factory=lambda: SingleFlight(time.monotonic, MAX_SHARED_LISTINGS)
    )
    commits: SingleFlight[CommitInfo] = field(
        default_factory=lambda: SingleFlight(time.monotonic, MAX_SHARED_COMMITS)
    )
    backoff: HostBackoff = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backoff", HostBackoff(self.config.timing.poll_backoff_max))

    async def reconcile(self, name: str) -> None:
        """Poll the repository if due, and enqueue the Project if the result is new."""
        key = event_map.source(name)
        raw = await self.applier.get(kinds.PROJECT, name, key)
        project = Project(raw) if raw else None
        if project is None or project.git is None or project.deleting or project.git.get("suspend"):
            self.observed_sources.remove(name)
            self.schedule.remove(name)
            self.slots.remove(key)
            self.applier.queues.remove(key)
            return
        url, now = str(project.git["url"]), time.monotonic()
        wait = self._wait(project, url, now)
        if wait > 0:
            self.applier.queues.add(key, wait)
            return
        host = Remote(url).host
        slow = self.backoff.is_slow(url, host, name)
        if not self.slots.acquire(key, host, slow):
            self.applier.queues.add(key, SLOT_RETRY_SECONDS)
            return
        try:
            await self._poll(project, url, host)
        finally:
            for other in self.slots.release(host, slow):
                self.applier.queues.add(other)

    def _wait(self, project: Project, url: str, now: float) -> float:
        """Return seconds until this Project may be polled; 0 if it may be now."""
        name, before, desired = project.name, self.observed_sources.get(project.name), unobserved(project)
        changed = before is None or (before.source, before.requested_at) != (
            desired.source,
            desired.requested_at,
        )
        pushed = self.schedule.note_push(name, project.annotations.get(ANNOTATION_PUSHED_AT, ""))
        needed = self.observed_sources.pop_request(name)
        if pushed or needed or (changed and name not in self.schedule.requested):
            self.schedule.request(name, now)
        if name in self.schedule.requested:
            return 0.0
        interval = self._interval(project)
        retry_at = self.backoff.retry_at(url, Remote(url).host, name, interval)
        return max(0.0, self.schedule.due_at(name, interval) - now, retry_at - now)

    async def _poll(self, project: Project, url: str, host: str) -> None:
        name, key, interval = project.name, event_map.source(project.name), self._interval(project)
        before, requested, now = (
            self.observed_sources.get(name),
            self.schedule.requested.get(name),
            time.monotonic(),
        )
        observed, listed_at = await self._observe(
            project, before, self.schedule.listed_since(name, now, interval)
        )
        self.schedule.polled(name, listed_at, interval, requested)
        host_wait = self.backoff.retry_at(url, host, name, interval) - time.monotonic()
        delay = max(self.schedule.due[name] - time.monotonic(), host_wait, 0.001)
        if requested is not None and before is not None and observed.commit == before.commit:
            delay = min(delay, PUSH_RETRY_SECONDS)
            self.schedule.due[name] = time.monotonic() + delay
        self.applier.queues.add(key, delay)
        if self.observed_sources.put(name, observed) or requested is not None:
            self.applier.queues.add(event_map.project(name))

    async def _observe(
        self, project: Project, before: ObservedSource | None, since: float
    ) -> tuple[ObservedSource, float]:
        """Return the observation, and when its listing started."""
        desired, now = unobserved(project), time.monotonic()
        git = project.git or {}
        url, ref, path = str(git["url"]), dict(git.get("ref") or {}), str(git.get("path") or "")
        # A commit that the Project names is not listed, and what is known of it is not fetched.
        host, remote, listed, connected = Remote(url).host, None, False, "commit" not in ref
        try:
            remote = await remote_of(self.applier.kube, project, self.config.secret_use)
            listing_key = (remote, tuple(sorted(ref.items())))
            head, listed_at = await self.heads.get(listing_key, since, lambda: self.git.head(remote, ref))
            listed = True
            if connected:
                self.backoff.record_listing(url, host)
            commit = _recorded_commit(project, desired, before, head.commit)
            if commit is None:
                commit_key = (remote, head.commit, path)
                problem_ttls = {} if project.name in self.schedule.requested else COMMIT_PROBLEM_SECONDS
                commit, fetched_at = await self.commits.get(
                    commit_key, 0.0, lambda: self.git.commit(remote, head, path), problem_ttls
                )
                connected = connected or fetched_at >= now
        except GitProblem as problem:
            result = "unreachable" if problem.transient else "refused"
            self.applier.metrics.polls.labels(result).inc()
            if problem.transient and listed:
                self.backoff.record_unread_commit(url, project.name, time.monotonic())
            elif problem.transient:
                self.backoff.record_failure(url, host, project.name, time.monotonic())
            elif remote is not None:
                self.backoff.record_success(url, host, project.name, time.monotonic() - now, connected)
            source_problem = SourceProblem(problem.reason, problem.message, problem.transient)
            return replace(desired, problem=source_problem), now
        self.backoff.record_success(url, host, project.name, time.monotonic() - now, connected)
        same = before is not None and before.commit == head.commit
        result = "shared" if listed_at < now else "unchanged" if same else "new"
        self.applier.metrics.polls.labels(result).inc()
        observed = replace(
            desired, name=head.name, commit=head.commit, tree=commit.tree, subject=commit.subject
        )
        return observed, listed_at

    def _interval(self, project: Project) -> float:
        git = project.git or {}
        return durations.seconds(git["interval"]) if git.get("interval") else self.config.timing.poll


def _recorded_commit(
    project: Project, desired: ObservedSource, before: ObservedSource | None, commit: str
) -> CommitInfo | None:
    """Return the head's subject and tree if known, to avoid a fetch."""
    if before is not None and before.commit == commit and before.source == desired.source:
        return CommitInfo(before.subject, before.tree)
    recorded = project.status.get("source") or {}
    same_spec = project.status.get("observedGeneration") == project.generation
    # A generation counts as observed before its head is deployed: the record may have an earlier path.
    same_path = (recorded.get("path") or "") == ((project.git or {}).get("path") or "")
    if before is None and recorded.get("commit") == commit and same_spec and same_path:
        return CommitInfo("", str(recorded.get("tree") or ""))
    return None
