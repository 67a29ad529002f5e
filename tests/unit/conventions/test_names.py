"""Conventions of names and folders: one class per name, constants with subject and unit, small folders.

Called by `make lint`. Reads the source files that git tracks; imports nothing of the product.
"""

import ast
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
PRODUCT = (
    "actions", "api", "bench", "build", "client", "clients", "controller", "crds", "dev", "egress",
    "http_server", "internal_tls", "kube", "plan", "runner",
)  # fmt: skip
MAX_MODULES = 15
GENERATED = {"client/crewyard/client.py"}
"""Made of async_client.py: the same names in a second form."""
UNITS = {"KIB", "MIB", "GIB", "KB", "MB", "GB"}
"""Constants that are a unit themselves."""
FEWEST_WORDS = 2


@cache
def files() -> tuple[str, ...]:
    """Return the tracked Python files of the product and of the tests, without examples and migrations."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return tuple(
        name
        for name in listed
        if name.split("/")[0] in (*PRODUCT, "tests")
        and "/migrations/" not in name
        and name not in GENERATED
        and (ROOT / name).exists()
    )


@cache
def tree(name: str) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse((ROOT / name).read_text())


def teardown_module() -> None:
    """Free the trees: a million objects that each full garbage collection would visit."""
    tree.cache_clear()


def is_product(name: str) -> bool:
    """Tell whether a file belongs to the product, dev or bench and not to the tests."""
    return not name.startswith("tests/")


def test_a_class_name_is_unique_unless_one_class_implements_the_other() -> None:
    places: dict[tuple[bool, str], list[tuple[str, ast.ClassDef]]] = defaultdict(list)
    for name in filter(is_product, files()):
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                # The client is a library of its own, whose public names are the API's.
                places[name.startswith("client/"), node.name].append((name, node))
    repeated = {
        name: [file for file, _ in classes]
        for (_, name), classes in places.items()
        if len(classes) > 1 and not any(_is_protocol(node) for _, node in classes)
    }
    assert repeated == {}


def test_a_folder_holds_at_most_fifteen_modules() -> None:
    modules = Counter(
        str(Path(name).parent) for name in files() if not name.endswith(("__init__.py", "__main__.py"))
    )
    assert {folder: count for folder, count in modules.items() if count > MAX_MODULES} == {}


def test_a_numeric_constant_names_its_subject_and_its_unit() -> None:
    short = [
        f"{name}: {constant}"
        for name in filter(is_product, files())
        for constant in _numeric_constants(tree(name))
        if len(constant.strip("_").split("_")) < FEWEST_WORDS and constant.strip("_") not in UNITS
    ]
    assert short == []


def test_every_test_file_is_in_a_folder_that_pytest_collects() -> None:
    import tomllib

    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    left_out = {
        name
        for name in files()
        for part in Path(name).parts[:-1]
        if name.startswith("tests/")
        and Path(name).name.startswith("test_")
        and part in options["norecursedirs"]
    }
    assert left_out == set() and "build" not in options["norecursedirs"]


def _is_protocol(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)


def _numeric_constants(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        targets, value = [], None
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign):
            targets, value = [node.target], node.value
        if isinstance(value, ast.Constant) and type(value.value) in (int, float):
            yield from (
                target.id for target in targets if isinstance(target, ast.Name) and target.id.isupper()
            )


def test_lint_reads_all_folders_with_python():
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    (line,) = (line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("CODE :="))
    assert set(line.split()[2:]) == {name.partition("/")[0] for name in listed}
