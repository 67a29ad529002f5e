"""Images that a project may run where the installation verifies them."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controller.attestation import verify
from controller.attestation.registry import AttestationProblem
from controller.attestation.verify import ImageVerifier
from controller.config import ControllerConfig
from crds.objects import Deployment, Project

DIGEST = "sha256:" + "1" * 64


class Registry:
    """A registry whose images all have the provenance of the project `demo`."""

    def __init__(self) -> None:
        self.asked = 0
        self.silent = False
        self.answers = asyncio.Event()
        self.answers.set()

    async def statements(self, project: Project, digest: str, keys: object) -> list[dict[str, Any]]:
        self.asked += 1
        await asyncio.sleep(0)
        await self.answers.wait()
        if self.silent:
            raise AttestationProblem("the registry did not answer")
        parameters = {"namespace": "crews", "project": "demo"}
        return [
            {
                "predicateType": "https://slsa.dev/provenance/v1",
                "subject": [{"digest": {"sha256": digest.removeprefix("sha256:")}}],
                "predicate": {"buildDefinition": {"externalParameters": parameters}},
            }
        ]


async def test_another_project_may_not_run_a_verified_image(make: Any, config: ControllerConfig) -> None:
    verifying = replace(config, verify_images=True, signing=object())  # type: ignore[arg-type]
    verifier = ImageVerifier(Registry(), verifying)  # type: ignore[arg-type]

    def image_of(project: str) -> Deployment:
        image = f"{config.repository('demo')}@{DIGEST}"
        return make.deployment(project=project, status={"image": image}, built=False)  # type: ignore[no-any-return]

    assert await verifier.problem(make.project(), image_of("demo")) is None
    problem = await verifier.problem(make.project("other"), image_of("other"))
    assert problem is not None and "not in the project's repository" in problem


async def test_the_registry_is_asked_again_after_a_growing_pause(make: Any, config: ControllerConfig) -> None:
    verifying = replace(config, verify_images=True, signing=object())  # type: ignore[arg-type]
    registry, now = Registry(), [0.0]
    registry.silent = True
    verifier = ImageVerifier(registry, verifying, lambda: now[0])  # type: ignore[arg-type]
    image = {"image": f"{config.repository('demo')}@{DIGEST}"}
    deployment, asked_at = make.deployment(status=image, built=False), []
    for second in range(300):
        now[0], before = float(second), registry.asked
        problem = await verifier.problem(make.project(), deployment)
        assert problem is not None and "did not answer" in problem
        asked_at += [second] * (registry.asked - before)
    assert asked_at == [0, 5, 15, 35, 75, 135, 195, 255]
    # A change of the Deployment, such as the record of its attestation, is looked at immediately.
    registry.silent = False
    assert await verifier.problem(make.project(), deployment) is not None
    assert await verifier.problem(make.project(), make.deployment(status=image, built=False)) is None
    assert await verifier.problem(make.project(), deployment) is None


async def test_a_registry_that_hangs_keeps_no_reconcile_waiting(
    make: Any, config: ControllerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "ANSWER_SECONDS", 0.01, raising=False)
    registry = Registry()
    registry.answers.clear()
    verifying = replace(config, verify_images=True, signing=object())  # type: ignore[arg-type]
    verifier = ImageVerifier(registry, verifying)  # type: ignore[arg-type]
    deployment = make.deployment(status={"image": f"{config.repository('demo')}@{DIGEST}"}, built=False)
    for _ in range(2):
        async with asyncio.timeout(30):
            problem = await verifier.problem(make.project(), deployment)
        assert problem is not None and "is being asked" in problem
        assert verifier.is_looking(deployment)
    registry.answers.set()
    while verifier.is_looking(deployment):
        await asyncio.sleep(0)
    assert await verifier.problem(make.project(), deployment) is None
    assert registry.asked == 1


async def test_two_reconciles_of_one_image_ask_the_registry_once(make: Any, config: ControllerConfig) -> None:
    registry = Registry()
    registry.silent = True
    verifying = replace(config, verify_images=True, signing=object())  # type: ignore[arg-type]
    verifier = ImageVerifier(registry, verifying)  # type: ignore[arg-type]
    deployment = make.deployment(status={"image": f"{config.repository('demo')}@{DIGEST}"}, built=False)
    asked = (verifier.problem(make.project(), deployment) for _ in range(2))
    first, second = await asyncio.gather(*asked)
    assert first == second and "did not answer" in str(first)
    assert registry.asked == 1


async def test_while_the_registry_is_asked_again_the_last_problem_is_named(
    make: Any, config: ControllerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "ANSWER_SECONDS", 0.01)
    registry, now = Registry(), [0.0]
    registry.silent = True
    verifying = replace(config, verify_images=True, signing=object())  # type: ignore[arg-type]
    verifier = ImageVerifier(registry, verifying, lambda: now[0])  # type: ignore[arg-type]
    deployment = make.deployment(status={"image": f"{config.repository('demo')}@{DIGEST}"}, built=False)
    while "is being asked" in (problem := str(await verifier.problem(make.project(), deployment))):
        pass
    assert problem.endswith("the registry did not answer")
    registry.answers.clear()
    now[0] = verify.FIRST_RETRY_SECONDS
    async with asyncio.timeout(30):
        again = await verifier.problem(make.project(), deployment)
    assert again == f"{problem}; the registry is being asked again"
    registry.answers.set()
    while verifier.is_looking(deployment):
        await asyncio.sleep(0)
