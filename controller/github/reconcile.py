"""Telling GitHub about one Deployment, and asking it whether a preview's pull request is still open.

Nothing waits for it: it has a queue and workers of its own, and a GitHub that is
away, slow or wrong costs no build and no activation. What was told is recorded
after it was told, so that after a crash the same is told again, which changes
nothing there. Called by `controller.runtime.worker` under the key `github/<deployment>`.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from controller.config import Config
from controller.github.client import GitHub, GitHubProblem
from controller.github.credentials import Credentials, CredentialsProblem, of_secret
from controller.github.report import Report, annotation, pull_request, report, told
from controller.runtime import event_map
from controller.runtime.apply import Actor
from controller.runtime.decision import Note, Patch
from controller.runtime.workqueue import backoff
from crds import kinds
from crds.names import ANNOTATION_CLOSED, ANNOTATION_GITHUB
from crds.objects import Deployment, Project

REFUSED = 600.0
"""Seconds until something that GitHub refused is tried again: somebody may have put it right."""
PACE = 40.0
"""Back-off of a GitHub that is away, in units of the queue's: 2 s, 4 s, … up to twenty minutes."""
LONGEST = 7200.0
"""GitHub's limits are counted by the hour: nobody is kept waiting for longer."""
PREVIEW_LOOK = 300.0
"""Seconds between two looks at the pull request of a preview."""


@dataclass
class Memory:
    """What only this process needs to know: failures in a row, and what was already said and told about one.

    `unsure` are those of which the record of what was told could not be written, `quiet` says until when
    nothing is told of a project, since GitHub asked for that.
    """

    failures: dict[str, int] = field(default_factory=dict)
    said: dict[str, str] = field(default_factory=dict)
    looked: dict[str, datetime] = field(default_factory=dict)
    commits: dict[str, tuple[str, str]] = field(default_factory=dict)
    unsure: set[str] = field(default_factory=set)
    quiet: dict[str, datetime] = field(default_factory=dict)

    def forget(self, name: str) -> None:
        """The Deployment is gone."""
        for table in (self.failures, self.said, self.looked, self.commits):
            table.pop(name, None)
        self.unsure.discard(name)

    def hush(self, project: str, until: datetime) -> None:
        """GitHub wants to hear nothing of this project until then; what is over is forgotten."""
        self.quiet[project] = max(until, self.quiet.get(project, until))

    def silence(self, project: str, now: datetime) -> float:
        """For how many seconds it wants to hear nothing yet."""
        until = self.quiet.get(project)
        if until is None or until <= now:
            self.quiet.pop(project, None)
            return 0.0
        return (until - now).total_seconds()


@dataclass(frozen=True)
class GitHubReconciler:
    """The reconcile of what GitHub knows of a Deployment."""

    actor: Actor
    config: Config
    github: GitHub
    memory: Memory = field(default_factory=Memory)

    async def reconcile(self, name: str) -> None:
        """Brings GitHub up to date about one Deployment. Raises what the apiserver refuses."""
        key = event_map.github(name)
        raw = await self.actor.seen(kinds.DEPLOYMENT, name, key)
        deployment = Deployment(raw) if raw else None
        found = await self.actor.seen(kinds.PROJECT, deployment.project, key) if deployment else None
        project = Project(found) if found else None
        if deployment is None or project is None:
            self.memory.forget(name)
            self.actor.queue.forget(key)
            return
        now = datetime.now(UTC)
        wanted = report(project, deployment, self.config.public_url, now)
        if wanted is None:
            self.memory.forget(name)
            return
        if left := self.memory.silence(project.name, now):
            self.actor.queue.add(key, left)
            return
        try:
            await self._tell(project, deployment, wanted)
            await self._look_at_pull_request(project, deployment, wanted, now)
            self.memory.failures.pop(name, None)
        except (GitHubProblem, CredentialsProblem) as problem:
            self._failed(deployment, problem)

    async def _tell(self, project: Project, deployment: Deployment, wanted: Report) -> None:
        before = told(deployment)
        unsure = deployment.name in self.memory.unsure
        if not wanted.news(before) and not unsure:
            return
        credentials = await self._credentials(project)
        commit = (wanted.repository, wanted.commit_state)
        if unsure or (wanted.commit_news(before) and self.memory.commits.get(deployment.name) != commit):
            await self.github.tell_commit(credentials, wanted)
            # GitHub takes a thousand of them a commit, and every one of them sets others to work: one that it
            # took is not told again because it refuses what follows.
            self.memory.commits[deployment.name] = commit
        there = await self._tell_deployment(credentials, wanted, before.deployment if before else None)
        value = {"metadata": {"annotations": {ANNOTATION_GITHUB: annotation(wanted, there)}}}
        # Without a resourceVersion the annotation would do too, but another state may be there by now.
        patch = Patch(kinds.DEPLOYMENT, deployment.name, value, deployment.resource_version, None)
        # Where another controller was faster, the last word that GitHub heard may have been an old one.
        self.memory.unsure.add(deployment.name)
        await self.actor.patch(patch)
        self.memory.unsure.discard(deployment.name)

    async def _tell_deployment(self, credentials: Credentials, wanted: Report, known: int | None) -> int:
        """The id of GitHub's deployment that was told: a new one where the known one is not there."""
        if known is not None:
            try:
                await self.github.tell_deployment(credentials, wanted, known, wanted.state)
                return known
            except GitHubProblem as problem:
                # Somebody removed it, or the Project names another repository by now.
                if problem.status != 404:
                    raise
        there = await self.github.deployment(credentials, wanted)
        await self.github.tell_deployment(credentials, wanted, there, wanted.state)
        return there

    async def _look_at_pull_request(
        self, project: Project, deployment: Deployment, wanted: Report, now: datetime
    ) -> None:
        """A preview whose pull request is closed is marked; the Project's retention then removes it."""
        number = pull_request(deployment)
        if not deployment.preview or number is None or ANNOTATION_CLOSED in deployment.annotations:
            return
        last = self.memory.looked.get(deployment.name)
        if last is not None and (left := PREVIEW_LOOK - (now - last).total_seconds()) > 0:
            self.actor.queue.add(event_map.github(deployment.name), left)
            return
        credentials = await self._credentials(project)
        still = await self.github.is_open(credentials, wanted.repository, number)
        self.memory.looked[deployment.name] = now
        if still:
            self.actor.queue.add(event_map.github(deployment.name), PREVIEW_LOOK)
            return
        value = {"metadata": {"annotations": {ANNOTATION_CLOSED: f"pull request {number}"}}}
        await self.actor.patch(
            Patch(kinds.DEPLOYMENT, deployment.name, value, deployment.resource_version, None)
        )

    async def _credentials(self, project: Project) -> Credentials:
        name = str(project.spec["github"]["secretRef"]["name"])
        return of_secret(await self.actor.kube.get(kinds.SECRET, name), name)

    def _failed(self, deployment: Deployment, problem: GitHubProblem | CredentialsProblem) -> None:
        name, text = deployment.name, str(problem)
        count = self.memory.failures.get(name, 0) + 1
        self.memory.failures[name] = count
        passing = isinstance(problem, GitHubProblem) and problem.passing
        if not passing and self.memory.said.get(name) != text:
            self.memory.said[name] = text
            note = Note("GitHubNotTold", text, True)
            self.actor.recorder.note(kinds.DEPLOYMENT, deployment.raw, note, datetime.now(UTC))
        self.actor.metrics.github.labels("passing" if passing else "refused").inc()
        after = min(problem.after, LONGEST) if isinstance(problem, GitHubProblem) else 0.0
        if after:
            self.memory.hush(deployment.project, datetime.now(UTC) + timedelta(seconds=after))
        self.actor.queue.add(
            event_map.github(name), max(after, PACE * backoff(count)) if passing else REFUSED
        )
