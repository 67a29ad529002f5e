"""Holes in which Secrets a project may use, and where they go (X11)."""

from tests.security.holes.hole import Hole, hole

SECRET_USE = "tests/unit/crds/secrets/test_use.py"
FOREIGN = "tests/cluster/controller/test_secret_use.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X11", "a Secret that names another project is used", "crds/secrets/use.py",
        'return project.name == label or bool({project.name, "*"} & (listed or frozenset()))', "return True",
        SECRET_USE,
    ),
    hole(
        "X11", "a Secret goes to any host", "crds/secrets/use.py",
        "reference.host.lower() not in hosts", "False", SECRET_USE,
    ),
    hole(
        "X11", "another project's variables are a credential", "crds/secrets/use.py",
        "if _holds_variables(secret, reference.name, use):", "if False:", SECRET_USE,
    ),
    hole(
        "X11", "variables of an earlier project are used", "crds/secrets/use.py",
        "if project.uid in owners if owners else", "if owners or", SECRET_USE,
    ),
    hole(
        "X11", "a build gets a foreign Secret", "controller/deployment/reconcile.py",
        "if decision.create and (refused := await self._secret_problem(observed, decision)) is not None:",
        "if refused := None:", f"{FOREIGN}::test_a_build_waits_until_the_secret_names_its_project",
    ),
    hole(
        "X11", "a run gets a foreign Secret", "controller/run/admission.py",
        "if refused is not None:", "if False:",
        f"{FOREIGN}::test_a_run_waits_until_the_secret_names_its_project",
    ),
    hole(
        "X11", "a poll sends a foreign Secret", "controller/pods/secret_check.py",
        "if (problem := credential_problem(secret, reference, project, use)) is not None:",
        "if problem := None:", f"{FOREIGN}::test_a_poll_sends_no_foreign_secret",
    ),
    hole(
        "X11", "variables of another owner are shown", "api/v1/env/routes.py",
        "if problem is not None:", "if False:",
        "tests/cluster/api_http/test_projects.py"
        "::test_variables_of_another_owner_are_neither_shown_nor_replaced",
    ),
)  # fmt: skip
