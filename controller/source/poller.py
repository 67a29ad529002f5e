"""Looking at Projects' repositories: when, with which credentials, and what is new.

Apart from the Project's other work, so that a slow remote delays no rollback. An
idle Project costs at most one listing of heads, shared with those that follow the
same, and no write. Called by `controller.runtime.worker` under the key `sources/<project>`.
"""

import time
from dataclasses import dataclass, field, replace

from controller.config import Config
from controller.git.client import Git
from controller.git.repository import Commit, GitProblem, Head, Remote
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.source.credentials import remote_of
from controller.source.host_backoff import Patience
from controller.source.host_limits import Places
from controller.source.observed import Look, Looks, Problem, begin
from controller.source.schedule import AGAIN, Schedule
from controller.source.singleflight import Shared
from crds import durations, kinds
from crds.names import ANNOTATION_PUSHED_AT
from crds.objects import Project

PARKED_AGAIN = 30.0
"""Seconds after which a look that waits for a place tries by itself; it is told of one before."""
OF_THE_COMMIT = {"PathNotFound": 600.0, "RepositoryTooLarge": 600.0}
"""Problems that stay with a commit, and for how many seconds it is not fetched again to find the same."""
LISTINGS = 10_000
COMMITS = 1_000


@dataclass(frozen=True)
class SourceReconciler:
    """The reconcile of a Project's repository."""

    actor: Actor
    config: Config
    git: Git
    looks: Looks
    schedule: Schedule = field(default_factory=Schedule)
    places: Places = field(default_factory=Places)
    heads: Shared[Head] = field(default_factory=lambda: Shared(time.monotonic, LISTINGS))
    commits: Shared[Commit] = field(default_factory=lambda: Shared(time.monotonic, COMMITS))
    patience: Patience = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "patience", Patience(self.config.timing.poll_backoff_max))

    async def reconcile(self, name: str) -> None:
        """Looks at the repository if it is time, and tells the Project if something is new."""
        key = event_map.source(name)
        raw = await self.actor.seen(kinds.PROJECT, name, key)
        project = Project(raw) if raw else None
        if project is None or project.git is None or project.deleting or project.git.get("suspend"):
            self.looks.forget(name)
            self.schedule.forget(name)
            self.places.forget(key)
            self.actor.queue.forget(key)
            return
        url, now = str(project.git["url"]), time.monotonic()
        wait = self._wait(project, url, now)
        if wait > 0:
            self.actor.queue.add(key, wait)
            return
        host = Remote(url).host
        doubtful = self.patience.doubts(url, host)
        if not self.places.take(key, host, doubtful):
            self.actor.queue.add(key, PARKED_AGAIN)
            return
        try:
            await self._work(project, url, host)
        finally:
            for other in self.places.free(host, doubtful):
                self.actor.queue.add(other)

    def _wait(self, project: Project, url: str, now: float) -> float:
        """Seconds until this Project may be looked at; 0 where it may be now."""
        name, before, asked = project.name, self.looks.get(project.name), begin(project)
        changed = before is None or (before.source, before.requested_at) != (asked.source, asked.requested_at)
        pushed = self.schedule.tell(name, project.annotations.get(ANNOTATION_PUSHED_AT, ""))
        demanded = self.looks.take_demand(name)
        if pushed or demanded or (changed and name not in self.schedule.wanted):
            self.schedule.want(name, now)
        if name in self.schedule.wanted:
            return 0.0
        return max(
            0.0, self.schedule.due.get(name, 0.0) - now, self.patience.until(url, Remote(url).host) - now
        )

    async def _work(self, project: Project, url: str, host: str) -> None:
        name, key, interval = project.name, event_map.source(project.name), self._interval(project)
        before, wanted, now = self.looks.get(name), self.schedule.wanted.get(name), time.monotonic()
        look, began = await self._look(project, before, self.schedule.since(name, now, interval))
        self.schedule.looked(name, began, interval, wanted)
        rest = self.patience.until(url, host) - time.monotonic()
        pause = max(self.schedule.due[name] - time.monotonic(), rest, 0.001)
        if wanted is not None and before is not None and look.commit == before.commit:
            pause = min(pause, AGAIN)
            self.schedule.due[name] = time.monotonic() + pause
        self.actor.queue.add(key, pause)
        if self.looks.put(name, look) or wanted is not None:
            self.actor.queue.add(event_map.project(name))

    async def _look(self, project: Project, before: Look | None, since: float) -> tuple[Look, float]:
        """What there is, and when the listing began that says so."""
        asked, now = begin(project), time.monotonic()
        git = project.git or {}
        url, ref, path = str(git["url"]), dict(git.get("ref") or {}), str(git.get("path") or "")
        host, remote = Remote(url).host, None
        try:
            remote = await remote_of(self.actor.kube, project)
            which = (remote, tuple(sorted(ref.items())))
            head, began = await self.heads.get(which, since, lambda: self.git.head(remote, ref))
            found = _unchanged(project, asked, before, head.commit)
            if found is None:
                what = (remote, head.commit, path)
                lasting = {} if project.name in self.schedule.wanted else OF_THE_COMMIT
                found, _ = await self.commits.get(
                    what, 0.0, lambda: self.git.commit(remote, head, path), lasting
                )
        except GitProblem as problem:
            result = "unreachable" if problem.passing else "refused"
            self.actor.metrics.polls.labels(result).inc()
            if problem.passing:
                self.patience.failed(url, host, time.monotonic())
            elif remote is not None:
                self.patience.answered(url, host, time.monotonic() - now)
            told = Problem(problem.reason, problem.message, problem.passing)
            return replace(asked, problem=told), now
        self.patience.answered(url, host, time.monotonic() - now)
        same = before is not None and before.commit == head.commit
        result = "shared" if began < now else "unchanged" if same else "new"
        self.actor.metrics.polls.labels(result).inc()
        look = replace(asked, name=head.name, commit=head.commit, tree=found.tree, subject=found.subject)
        return look, began

    def _interval(self, project: Project) -> float:
        git = project.git or {}
        return durations.seconds(git["interval"]) if git.get("interval") else self.config.timing.poll


def _unchanged(project: Project, asked: Look, before: Look | None, commit: str) -> Commit | None:
    """The head's subject and tree where they are known, so that nothing needs to be fetched."""
    if before is not None and before.commit == commit and before.source == asked.source:
        return Commit(before.subject, before.tree)
    recorded = project.status.get("source") or {}
    same_spec = project.status.get("observedGeneration") == project.generation
    if before is None and recorded.get("commit") == commit and same_spec:
        return Commit("", str(recorded.get("tree") or ""))
    return None
