"""Holes in what a tenant may spend: pods, bytes, requests (X11)."""

from tests.security.holes.hole import Hole, hole

CEILINGS = "tests/unit/controller/pods/test_ceilings.py"

HOLES: tuple[Hole, ...] = (
    hole(
        "X11", "a project's amounts have no ceiling", "controller/pods/ceilings.py",
        "elif _exceeds(amount, ceilings[name]):", "elif False:", CEILINGS,
    ),
    hole(
        "X11", "a project takes any resource", "controller/pods/ceilings.py",
        "if name not in ceilings:\n", "if False:\n", CEILINGS,
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
)  # fmt: skip
