"""Images that a project may run where the installation verifies them."""

from dataclasses import replace
from typing import Any

from controller.attestation.verify import ImageVerifier
from controller.config import ControllerConfig
from crds.objects import Deployment, Project

DIGEST = "sha256:" + "1" * 64


class Registry:
    """A registry whose images all have the provenance of the project `demo`."""

    async def statements(self, project: Project, digest: str, keys: object) -> list[dict[str, Any]]:
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
