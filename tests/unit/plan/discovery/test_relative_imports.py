"""A module that imports from src itself needs the directory above src on its path."""

import pytest

from plan.discovery.relative_imports import leaves_root


def leaves(files: dict[str, str], path: str = "src/p/a.py") -> bool:
    return leaves_root({name: text.encode() for name, text in files.items()}, path, "src", "3.99")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from .. import state", True),
        ("from ..state import State", True),
        ("def f():\n    from ..state import State", True),
        ("from . import state", False),
        ("from .more.state import State", False),
        ("from state import State\nimport src.state", False),
        ("x = <syntax of a later Python>", False),
    ],
)
def test_module_of_a_package_leaves_src_above_its_package(code: str, expected: bool) -> None:
    assert leaves({"src/p/a.py": code}) is expected
    assert leaves({"src/p/q/a.py": code.replace("..", "...")}, "src/p/q/a.py") is expected


@pytest.mark.parametrize("level", [1, 2, 3])
def test_only_the_levels_to_src_itself_leave_it(level: int) -> None:
    code = f"from {'.' * level} import state"
    assert leaves({"src/p/q/a.py": code}, "src/p/q/a.py") is (level == 3)
    assert leaves({"src/a.py": code}, "src/a.py") is True


LEAVING = "from ... import state"


@pytest.mark.parametrize(
    "files",
    [
        {"src/p/a.py": "from . import b", "src/p/b.py": "from ..state import State"},
        {"src/p/a.py": "from .b import c", "src/p/b/__init__.py": LEAVING},
        {"src/p/a.py": "from .b import c", "src/p/b/c.py": LEAVING},
        {"src/p/a.py": "from .b.c import d", "src/p/b/c.py": LEAVING},
        {"src/p/a.py": "from .b import x, c", "src/p/b/x.py": LEAVING, "src/p/b/c.py": "def broken(:"},
        {
            "src/p/a.py": "from . import b",
            "src/p/b.py": "from . import a, c",
            "src/p/c.py": "from .. import d",
        },
    ],
)
def test_module_that_is_imported_relatively_counts(files: dict[str, str]) -> None:
    assert leaves(files)


@pytest.mark.parametrize(("number", "expected"), [(49, True), (50, False)])
def test_at_most_fifty_modules_are_read(number: int, expected: bool) -> None:
    files = {f"src/p/m{each}.py": f"from . import m{each + 1}" for each in range(number)}
    assert leaves({**files, f"src/p/m{number}.py": "from .. import x"}, "src/p/m0.py") is expected


def test_modules_that_import_each_other_are_read_once() -> None:
    assert not leaves({"src/p/a.py": "from . import b", "src/p/b.py": "from . import a, b"})
