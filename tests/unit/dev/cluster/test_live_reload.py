"""`make dev`: what is mounted, and which Deployments a changed file restarts."""

from pathlib import Path

import pytest

from dev.cluster import live_reload

CHECKOUT = Path("/srv/crewyard")


@pytest.mark.parametrize(
    ("files", "restarted"),
    [
        (["api/app.py"], ["crewyard-api"]),
        (["controller/run/decide.py"], ["crewyard-controller"]),
        (["crds/names.py"], ["crewyard-api", "crewyard-controller"]),
        (["api/app.py", "controller/config.py"], ["crewyard-api", "crewyard-controller"]),
        (["tests/unit/test_x.py", "docs/page.py"], []),
    ],
)
def test_a_file_restarts_the_processes_that_import_it(files: list[str], restarted: list[str]) -> None:
    assert live_reload.affected({CHECKOUT / file for file in files}, CHECKOUT) == restarted


def test_the_checkout_is_mounted_read_only_over_the_code_of_both_processes() -> None:
    persistent_volume, claim = live_reload.volume(CHECKOUT)
    assert persistent_volume["spec"]["hostPath"] == {"path": "/srv/crewyard", "type": "Directory"}
    name = claim["metadata"]["name"]
    assert persistent_volume["spec"]["claimRef"]["name"] == claim["spec"]["volumeName"] == name
    assert name != live_reload.volume(Path("/srv/other"))[1]["metadata"]["name"]
    for patch, deployment in zip(live_reload.patches(CHECKOUT), live_reload.DEPLOYMENTS, strict=True):
        pod = patch["spec"]["template"]["spec"]
        assert patch["metadata"]["name"] == deployment
        assert pod["volumes"] == [{"name": "code", "persistentVolumeClaim": {"claimName": name}}]
        (container,) = pod["containers"]
        (mount,) = container["volumeMounts"]
        assert mount == {"name": "code", "mountPath": live_reload.CODE_PATH, "readOnly": True}


def test_the_code_of_the_image_is_where_the_checkout_is_mounted() -> None:
    dockerfile = (Path(__file__).parents[4] / "Dockerfile").read_text()
    assert f"WORKDIR {live_reload.CODE_PATH}\n" in dockerfile
