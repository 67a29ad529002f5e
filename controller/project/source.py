"""Looking at Projects' repositories: when, with which credentials, and what is new.

Apart from the Project's other work, so that a slow remote delays no rollback. An
idle Project costs one listing of heads and no call to the apiserver. Called by
`controller.reconciler` under the key `sources/<project>`.
"""

import base64
import random
import time
from dataclasses import dataclass, field, replace

from controller import triggers
from controller.apply import Actor
from controller.config import Config
from controller.git import Git
from controller.project.looks import Look, Looks, Problem, begin
from controller.queue import backoff
from controller.repository import Commit, GitProblem, Remote
from crds import durations, kinds
from crds.objects import Project

HOST_BACKOFF = 20.0
"""Back-off of hosts that fail, in units of the queue's: 1 s, 2 s, 4 s … up to the configured maximum."""


@dataclass
class Schedule:
    """When each Project is looked at next, and which hosts are left alone until when; monotonic seconds."""

    due: dict[str, float] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    rests: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class SourceReconciler:
    """The reconcile of a Project's repository."""

    actor: Actor
    config: Config
    git: Git
    looks: Looks
    schedule: Schedule = field(default_factory=Schedule)

    async def reconcile(self, name: str) -> None:
        """Looks at the repository if it is time, and tells the Project if something is new."""
        raw = self.actor.known.get(kinds.PROJECT, name)
        project = Project(raw) if raw else None
        key = triggers.source(name)
        if project is None or project.git is None or project.deleting or project.git.get("suspend"):
            self.looks.forget(name)
            self.schedule.due.pop(name, None)
            self.actor.queue.forget(key)
            return
        now, before = time.monotonic(), self.looks.get(name)
        asked = begin(project)
        changed = before is None or (before.source, before.requested_at) != (asked.source, asked.requested_at)
        demanded = self.looks.take_demand(name)
        wait = self._wait(name, str(project.git["url"]), now, changed or demanded)
        if wait > 0:
            self.actor.queue.add(key, wait)
            return
        look = await self._look(project, asked, before)
        pause = self._pause(project, look)
        self.schedule.due[name] = time.monotonic() + pause
        self.actor.queue.add(key, pause)
        if self.looks.put(name, look) or demanded:
            self.actor.queue.add(triggers.project(name))

    def _wait(self, name: str, url: str, now: float, urgent: bool) -> float:
        """Seconds until this Project may be looked at; 0 where it may be now."""
        due = 0.0 if urgent else self.schedule.due.get(name, 0.0)
        rest = 0.0 if urgent else self.schedule.rests.get(Remote(url).host, 0.0)
        return max(0.0, due - now, rest - now)

    async def _look(self, project: Project, asked: Look, before: Look | None) -> Look:
        git = project.git or {}
        host = Remote(str(git["url"])).host
        try:
            remote = await self._remote(project)
            head = await self.git.head(remote, dict(git.get("ref") or {}))
            found = _unchanged(project, asked, before, head.commit)
            if found is None:
                found = await self.git.commit(remote, head, str(git.get("path") or ""))
        except GitProblem as problem:
            result = "unreachable" if problem.passing else "refused"
            self.actor.metrics.polls.labels(result).inc()
            self._failed(host, problem)
            return replace(asked, problem=Problem(problem.reason, problem.message, problem.passing))
        self.schedule.failures.pop(host, None)
        self.schedule.rests.pop(host, None)
        same = before is not None and before.commit == head.commit
        self.actor.metrics.polls.labels("unchanged" if same else "new").inc()
        return replace(asked, name=head.name, commit=head.commit, tree=found.tree, subject=found.subject)

    def _failed(self, host: str, problem: GitProblem) -> None:
        if problem.passing:
            count = self.schedule.failures.get(host, 0) + 1
            self.schedule.failures[host] = count
            pause = min(self.config.timing.poll_backoff_max, HOST_BACKOFF * backoff(count))
            self.schedule.rests[host] = time.monotonic() + pause

    def _pause(self, project: Project, look: Look) -> float:
        """Seconds until the next look: the interval, a tenth more or less by chance, or the host's rest."""
        git = project.git or {}
        interval = durations.seconds(git["interval"]) if git.get("interval") else self.config.timing.poll
        pause = interval * random.uniform(0.9, 1.1)
        if look.problem is not None and look.problem.passing:
            rest = self.schedule.rests.get(Remote(str(git["url"])).host, 0.0) - time.monotonic()
            return max(pause, rest)
        return pause

    async def _remote(self, project: Project) -> Remote:
        git = project.git or {}
        url, name = str(git["url"]), (git.get("secretRef") or {}).get("name")
        if not name:
            return Remote(url)
        secret = await self.actor.kube.get(kinds.SECRET, name)
        if secret is None:
            raise GitProblem("SecretNotFound", f"there is no Secret {name}; create it, or correct secretRef")
        data = {
            key: base64.b64decode(value).decode(errors="replace").strip()
            for key, value in (secret.get("data") or {}).items()
        }
        return Remote(
            url,
            data.get("username", ""),
            data.get("password", ""),
            data.get("bearerToken", ""),
            data.get("ca.crt", ""),
            data.get("identity", ""),
            data.get("known_hosts", ""),
        )


def _unchanged(project: Project, asked: Look, before: Look | None, commit: str) -> Commit | None:
    """The head's subject and tree where they are known, so that nothing needs to be fetched."""
    if before is not None and before.commit == commit and before.source == asked.source:
        return Commit(before.subject, before.tree)
    recorded = project.status.get("source") or {}
    same_spec = project.status.get("observedGeneration") == project.generation
    if before is None and recorded.get("commit") == commit and same_spec:
        return Commit("", str(recorded.get("tree") or ""))
    return None
