"""The dependency declaration, its keys, and its Dockerfile."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from plan.base.read import BaseDockerfile
from plan.config.configuration import Configuration
from plan.errors import PlanError
from plan.keys import build_key, dependencies_key, tree_hash
from plan.make import Plan, make_plan
from plan.packages.dependencies import DependencyDeclaration, read_dependencies
from plan.packages.dockerfile import dockerfile
from plan.packages.pip_log import dependency_failure
from plan.packages.requirements import logical_lines, package_name

V = "export SETUPTOOLS_SCM_PRETEND_VERSION=0.0.0 PBR_VERSION=0.0.0"
HEX = st.text("0123456789abcdef", min_size=64, max_size=64)


def declared(
    files: dict[str, str | bytes], base: str = "", configuration: Configuration | None = None
) -> DependencyDeclaration:
    data = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return read_dependencies(data, configuration or Configuration("x"), base=base)


def test_requirements_take_precedence_over_pyproject() -> None:
    files: dict[str, str | bytes] = {
        "requirements.txt": "langgraph==1.2\n",
        "pyproject.toml": "[project]\ndependencies = ['crewai']\n",
    }
    assert declared(files).lines == ("langgraph==1.2",)
    del files["requirements.txt"]
    assert declared(files).lines == ("crewai",)
    assert declared({}) == DependencyDeclaration("")


def test_dependencies_that_requirements_lack_are_noted() -> None:
    files: dict[str, str | bytes] = {
        "requirements.txt": "LangGraph==1.2\n",
        "pyproject.toml": "[project]\ndependencies = ['langgraph>=1', 'Pydantic_AI', 'rich', "
        "'x; os_name == \"nt\"']\n",
    }
    assert declared(files).notes == (
        "requirements.txt comes before pyproject.toml, and lacks pydantic-ai, rich of it",
    )
    files["requirements.txt"] = "pydantic.ai\nrich>=14\nlanggraph\n"
    assert declared(files).notes == ()
    files["requirements.txt"] = "-e .\n"
    assert declared(files).notes == ()


NEEDS_GIT = (
    '{}; the base image needs git for it: add packages = ["git"] to [build], or use the URL of an archive'
)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("x @ git+https://user:secret@git.example.com/r@v1", "x"),
        ("x[y]@git+ssh://git@git.example.com/r", "x"),
        ("git+https://git.example.com/r", "a requirement"),
        ("-e git+https://git.example.com/r#egg=x", "a requirement"),
        ("x @ https://git.example.com/r/archive/v1.tar.gz", None),
        ("agit+b>=1", None),
    ],
)
def test_a_requirement_that_needs_git_is_noted(line: str, named: str | None) -> None:
    expected = () if named is None else (NEEDS_GIT.format(f"from a git repository: {named}"),)
    assert declared({"requirements.txt": f"{line}\n"}).notes == expected
    with_git = Configuration("x", packages=("git",))
    assert declared({"requirements.txt": f"{line}\n"}, configuration=with_git).notes == ()


POETRY = "[tool.poetry]\nname = 'x'\n[tool.poetry.dependencies]\npython = '^3.11'\nrich = '*'\n"


def test_groups_that_poetry_would_install_are_noted() -> None:
    text = POETRY + (
        "[tool.poetry.group.llm.dependencies]\ncrewai = '^1'\nopenai = '*'\n"
        "[tool.poetry.group.dev.dependencies]\npytest = '*'\n"
        "[tool.poetry.group.Lint.dependencies]\nruff = '*'\n"
        "[tool.poetry.group.ui]\noptional = true\n[tool.poetry.group.ui.dependencies]\nstreamlit = '*'\n"
    )
    assert declared({"pyproject.toml": text}).notes == (
        "left out: the group llm of pyproject.toml (crewai, openai); to install it, add to crew.toml "
        '[build] groups = ["llm"]',
    )
    chosen = {"pyproject.toml": text.encode()}
    assert read_dependencies(chosen, Configuration("x", groups=("llm",))).notes == ()
    assert declared({"pyproject.toml": text, "requirements.txt": "rich\n"}).notes == ()


SETUPTOOLS = "[project]\nname = 'x'\nversion = '1'\ndynamic = ['dependencies']\n[tool.setuptools.dynamic]\n"


@pytest.mark.parametrize("value", ["['requirements.in', 'more/llm.txt']", "'requirements.in, more/llm.txt'"])
def test_files_that_setuptools_reads_are_read(value: str) -> None:
    files: dict[str, str | bytes] = {
        "pyproject.toml": SETUPTOOLS + f"dependencies = {{file = {value}}}\n",
        "requirements.in": "crewai  # all\n",
        "more/llm.txt": "openai>=1\n",
    }
    found = declared(files)
    assert (found.lines, found.origin, found.notes) == (
        ("crewai", "openai>=1"),
        "requirements.in, more/llm.txt",
        (),
    )
    del files["more/llm.txt"]
    with pytest.raises(PlanError, match="dynamic"):
        declared(files)


def test_files_of_requirements_that_are_not_read_are_noted() -> None:
    files: dict[str, str | bytes] = {
        "setup.cfg": "[options]\ninstall_requires = rich\n",
        "requirements.in": "rich\n",
        "requirements-llm.txt": "rich\n",
        "requirements/base.txt": "rich\n",
        "agents/requirements.in": "rich\n",
    }
    assert declared(files).notes == (
        "ignored: setup.cfg, requirements-llm.txt, requirements.in, requirements/base.txt; the "
        "dependencies come from no file; add a requirements.txt or a pyproject.toml",
    )
    assert declared({**files, "requirements.txt": "rich\n"}).notes == ()
    below = {f"crew/{path}": text for path, text in files.items()}
    assert declared(
        {**below, "requirements-x.txt": "rich\n", "crewing/requirements.in": ""}, "crew"
    ).notes == (
        "ignored: crew/setup.cfg, crew/requirements-llm.txt, crew/requirements.in, "
        "crew/requirements/base.txt; the dependencies come from no file; add a requirements.txt or a "
        "pyproject.toml",
    )


def test_the_directories_of_a_crew_declare_together() -> None:
    files: dict[str, str | bytes] = {
        "mono/crew/pyproject.toml": "[project]\nname = 'crew'\ndependencies = ['d']\n",
        "mono/crew/requirements.txt": "a\n-c ../c.txt\n-e .\n../libs/x\n",
        "mono/c.txt": "a<2\na<2\n",
        "mono/libs/x/setup.py": "",
        "mono/crew/one/requirements.txt": "b\n-c c.txt\n../../libs/y\na\n",
        "mono/crew/one/c.txt": "b<2\n",
        "mono/libs/y/pyproject.toml": "[project]\nname = 'y'\ndependencies = ['e']\n",
        "mono/crew/two/setup.py": "",
        "mono/crew/Pipfile": "",
        "mono/crew/one/setup.cfg": "",
        "mono/crew/one/poetry.lock": "",
        "mono/Pipfile": "",
    }
    found = declared(files, "mono/crew", Configuration("x", directories=("one", "./two", ".")))
    assert found == DependencyDeclaration(
        "mono/crew/requirements.txt, mono/crew/one/requirements.txt",
        ("a", "d", "b", "e"),
        ("a<2", "b<2"),
        ("mono/crew/two", "mono/libs/x", "mono/libs/y"),
        notes=(
            "ignored: mono/crew/Pipfile, mono/crew/one/poetry.lock; the dependencies come from "
            "mono/crew/requirements.txt, mono/crew/one/requirements.txt",
        ),
    )


@pytest.mark.parametrize(
    ("files", "configuration", "origin"),
    [
        ({}, Configuration("x"), ""),
        ({}, Configuration("langgraph.json", requires=("a",)), "langgraph.json"),
        ({"requirements.txt": "b\n"}, Configuration("langgraph.json", requires=("a",)), "requirements.txt"),
        ({"setup.py": ""}, Configuration("x", directories=("one",)), ""),
        ({"one/setup.py": ""}, Configuration("x", directories=("one",)), "the project in one"),
    ],
)
def test_the_origin_is_what_declares(
    files: dict[str, str | bytes], configuration: Configuration, origin: str
) -> None:
    assert declared(files, configuration=configuration).origin == origin


def test_each_kind_of_line_is_in_its_file() -> None:
    one = DependencyDeclaration("x", ("a", "b"), ("c",), direct=("d",), added=("e",), pylock="f")
    assert one.files() == {
        "requirements.txt": b"a\nb\n",
        "constraints.txt": b"c\n",
        "direct.txt": b"d\n",
        "added.txt": b"e\n",
        "pylock.toml": b"f",
    }
    assert one.packages == {"a", "b", "d", "e"}
    assert DependencyDeclaration("x").files() == {}


@pytest.mark.parametrize(
    ("declaration", "empty"),
    [
        (DependencyDeclaration("x", build_requires=("a",), private_index=True, locked=True), True),
        (DependencyDeclaration("x", ("a",)), False),
        (DependencyDeclaration("x", added=("a",)), False),
        (DependencyDeclaration("x", projects=("",)), False),
        (DependencyDeclaration("x", system_packages=("a",)), False),
        (DependencyDeclaration("x", dockerfile_lines=("a",)), False),
        (DependencyDeclaration("x", base=BaseDockerfile("Dockerfile", ())), False),
    ],
)
def test_a_declaration_is_empty_where_nothing_is_installed_or_executed(
    declaration: DependencyDeclaration, empty: bool
) -> None:
    assert declaration.empty is empty


def test_packages_of_windows_are_left_out() -> None:
    declaration = declared(
        {
            "requirements.txt": "PyWin32==308 --hash=sha256:aa\nrich\n"
            "pywin32 ; sys_platform == 'win32'\npywinpty[x]\n"
        }
    )
    assert declaration.lines == ("rich", "pywin32 ; sys_platform == 'win32'")
    assert declaration.notes == (
        "left out: PyWin32==308, which is for Windows only",
        "left out: pywinpty[x], which is for Windows only",
    )


def test_requirements_are_parsed_like_pip() -> None:
    text = "# all\n\nlanggraph==1.2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb  # two\nurl#egg @ https://x/#a\n"
    assert declared({"requirements.txt": text}).lines == (
        "langgraph==1.2 --hash=sha256:aa --hash=sha256:bb",
        "url#egg @ https://x/#a",
    )


def test_nested_files_are_inlined() -> None:
    declaration = declared(
        {
            "requirements.txt": "-r reqs/base.txt\n-cconstraints.txt\na\n",
            "reqs/base.txt": "-r ../requirements.txt\n--requirement more.txt\nb\n",
            "reqs/more.txt": "c\n",
            "constraints.txt": "a<2\n",
        }
    )
    assert set(declaration.lines) == {"a", "b", "c"}
    assert declaration.constraints == ("a<2",)


def test_project_itself_is_replaced_by_its_dependencies() -> None:
    declaration = declared(
        {"requirements.txt": "-e .\nx\n", "pyproject.toml": "[project]\ndependencies = ['y']\n"}
    )
    assert declaration.lines == ("x", "y")


@pytest.mark.parametrize("line", ["-e .", "-e ./lib"])
def test_lines_with_hashes_pin_what_a_local_project_asks_for(line: str) -> None:
    """`uv export` writes the project, and the pins of what it asks for."""
    project = "[project]\nname = 'x'\ndependencies = ['Six>=1', 'more']\n"
    pins = ("six==1.16.0 --hash=sha256:aa", "idna==3.7 --hash=sha256:bb")
    files: dict[str, str | bytes] = {
        "requirements.txt": "\n".join((line, *pins)),
        "pyproject.toml": project,
        "lib/pyproject.toml": project,
    }
    assert declared(files).lines == (*pins, "more")
    files["requirements.txt"] = f"{line}\nsix==1.16.0\n"
    assert declared(files).lines == ("six==1.16.0", "Six>=1", "more")


@pytest.mark.parametrize(
    ("files", "reason", "part"),
    [
        ({"requirements.txt": "a\n-r gone.txt\n"}, "ConfigInvalid", "requirements.txt line 2: gone.txt"),
        ({"requirements.txt": "-r ../../etc/passwd\n"}, "ConfigInvalid", "is not a file of the source"),
        (
            {"requirements.txt": "a\n-e ./libs/mine\n"},
            "DependencyResolution",
            "requirements.txt line 2 names ./libs/mine, which is not a Python project",
        ),
        (
            {"requirements.txt": "-e ../shared\n"},
            "DependencyResolution",
            "names ../shared, which is outside of the source",
        ),
        ({"requirements.txt": b"\xff\x00\xfe"}, "ConfigInvalid", "requirements.txt"),
        (
            {"pyproject.toml": "[project]\ndependencies = 'x'\n"},
            "ConfigInvalid",
            "line 2: project.dependencies",
        ),
        ({"pyproject.toml": "[project]\ndependencies = ['-r x']\n"}, "ConfigInvalid", "not a package"),
        ({"pyproject.toml": "[project]\ndynamic = ['dependencies']\n"}, "DependencyResolution", "dynamic"),
        (
            {"pyproject.toml": "[tool.poetry.dependencies]\nhttpx = '^x'\n"},
            "ConfigInvalid",
            "tool.poetry.dependencies.httpx",
        ),
        ({"pyproject.toml": "[project"}, "ConfigInvalid", "pyproject.toml is not valid TOML"),
    ],
)
def test_errors(files: dict[str, str | bytes], reason: str, part: str) -> None:
    with pytest.raises(PlanError) as raised:
        declared(files)
    assert raised.value.reason == reason
    assert part in raised.value.message
    assert raised.value.hint


def test_utf16_of_powershell() -> None:
    assert declared({"requirements.txt": "langgraph\r\n".encode("utf-16")}).lines == ("langgraph",)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("LangGraph>=1", "langgraph"),
        ("zope.interface [x] == 1; python_version > '3'", "zope-interface"),
        ("a_b@https://x", "a-b"),
        ("--hash=x", None),
        ("https://example.org/x.whl", None),
    ],
)
def test_package_names(line: str, name: str | None) -> None:
    assert package_name(line) == name


@pytest.mark.parametrize(
    ("requirements", "framework"),
    [
        ("crewai[tools]==1.15\n", "crewai"),
        ("LangGraph\n", "langgraph"),
        ("requests\n", "python"),
        ("", "python"),
    ],
)
def test_framework_is_inferred_from_dependencies(requirements: str, framework: str) -> None:
    files = {"main.py": b"kickoff = 1", "requirements.txt": requirements.encode()}
    assert make_plan(files, None, ["3.11"]).plan.framework == framework


@given(st.text(max_size=200))
def test_logical_lines_are_idempotent(text: str) -> None:
    lines = [line for _, line in logical_lines(text)]
    # A backslash before spaces continues nothing, until the spaces are removed.
    assume(not any(line.endswith("\\") for line in lines))
    assert [line for _, line in logical_lines("\n".join(lines))] == lines


class TestKeys:
    ONE = DependencyDeclaration("requirements.txt", ("a",))

    def test_origin_does_not_change_the_key(self) -> None:
        same = DependencyDeclaration("pyproject.toml", ("a",))
        assert dependencies_key(self.ONE, "3.11", "base", "tree") == dependencies_key(
            same, "3.11", "base", "other tree"
        )

    @pytest.mark.parametrize(
        "other",
        [
            (DependencyDeclaration("requirements.txt", ("a", "b")), "3.11", "base"),
            (DependencyDeclaration("requirements.txt", ("a",), ("b",)), "3.11", "base"),
            (ONE, "3.12", "base"),
            (ONE, "3.11", "base@sha256:1"),
        ],
    )
    def test_other_inputs_change_the_key(self, other: tuple[DependencyDeclaration, str, str]) -> None:
        assert dependencies_key(*other, "tree") != dependencies_key(self.ONE, "3.11", "base", "tree")

    def test_build_key_covers_the_runner(self) -> None:
        plan = Plan("python", "main:kickoff", "3.11")
        assert build_key("t", plan, "d", "r1") != build_key("t", plan, "d", "r2")


@given(st.lists(st.tuples(st.text(max_size=5), st.booleans(), HEX), max_size=5), st.randoms())
def test_tree_hash_is_independent_of_order(entries: list[tuple[str, bool, str]], random: object) -> None:
    shuffled = list(entries)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert tree_hash(shuffled) == tree_hash(entries)


@given(st.lists(st.tuples(st.text(max_size=5), st.booleans(), HEX), min_size=1, max_size=5))
def test_tree_hash_covers_every_field(entries: list[tuple[str, bool, str]]) -> None:
    path, executable, sha = entries[0]
    assert tree_hash([(path + "x", executable, sha), *entries[1:]]) != tree_hash(entries)
    assert tree_hash([(path, not executable, sha), *entries[1:]]) != tree_hash(entries)
    assert tree_hash(entries[1:]) != tree_hash(entries)


class TestDockerfile:
    def test_no_run_after_the_last_user(self) -> None:
        lines = dockerfile("python:3.11-slim", DependencyDeclaration("r", ("a",), ("b",))).splitlines()
        assert lines[0] == "FROM python:3.11-slim"
        assert lines[-2:] == ["WORKDIR /app", "USER 65532:65532"]
        assert any(
            "-r /workspace/declared/requirements.txt -c /workspace/declared/constraints.txt" in line
            for line in lines
        )

    def test_ca_bundle_is_used_but_not_copied(self) -> None:
        declaration = DependencyDeclaration("r", ("a",), ("b",))
        text = dockerfile("python:3.11-slim", declaration, "/workspace/ca.crt")
        own = " PIP_CERT=/workspace/ca.crt SSL_CERT_FILE=/workspace/ca.crt"
        assert text.count(own) == 1 and "COPY ca" not in text
        assert text.replace(own, "") == dockerfile("python:3.11-slim", declaration)

    @pytest.mark.parametrize(
        ("line", "pip"),
        [
            ("a[b]>=1 ; python_version > '3'", False),
            ("a==1 --hash=sha256:00 --hash=sha256:11", False),
            ("--extra-index-url https://index.example.com", False),
            ("-i https://index.example.com", False),
            ("--index-url='https://index.example.com/simple'", False),
            ("--find-links https://index.example.com/files", False),
            ("--no-index", False),
            ("--no-binary :all:", False),
            ("--only-binary=numpy", False),
            ("--only-binary numpy,scipy", True),
            ("-i https://index.example.com --extra-index-url https://more.example.com", True),
            ("--extra-index-url https://index.example.com --trusted-host index.example.com", True),
            ("--find-links ./wheels", True),
            ("--pre", True),
            ("--require-hashes", True),
            ("a==1 --config-settings=x=y", True),
            ("a==1 --global-option --x", True),
        ],
    )
    def test_pip_installs_what_uv_does_not_read(self, line: str, pip: bool) -> None:
        text = dockerfile("base", DependencyDeclaration("r", (line,)))
        assert ("/workspace/uv pip install" not in text) == pip
        assert "python3 -m pip install" in text

    @pytest.mark.parametrize(
        ("declaration", "commands"),
        [
            (DependencyDeclaration("r", ("a",)), ["install -r D/requirements.txt"]),
            (
                DependencyDeclaration(
                    "r", ("a",), ("b",), ("c", ""), direct=("d @ git+https://h/d",), pretends_version=True
                ),
                [f"({V}; install -r D/requirements.txt -r D/direct.txt T/c T -c D/constraints.txt)"],
            ),
            (
                DependencyDeclaration("r", ("a --hash=sha256:00",), ("b",), direct=("d",), locked=True),
                [
                    "install -r D/requirements.txt --require-hashes --no-deps -c D/constraints.txt",
                    "install -r D/direct.txt --no-deps -c D/constraints.txt",
                ],
            ),
            (
                DependencyDeclaration(
                    "r",
                    ("a --hash=sha256:00",),
                    projects=("c",),
                    locked=True,
                    pylock="x",
                    added=("e",),
                    pretends_version=True,
                ),
                [
                    "{ install -r D/requirements.txt --require-hashes --no-deps || { echo '"
                    "The index lacks a file of the lock: install again, from the URLs in the lock.'; "
                    "install -r D/pylock.toml --require-hashes --no-deps; }; }",
                    f"({V}; install T/c --no-deps)",
                    "install -r D/added.txt",
                ],
            ),
            (
                DependencyDeclaration("r", (), ("b",), added=("e",)),
                ["install -r D/added.txt -c D/constraints.txt"],
            ),
            (
                DependencyDeclaration("r", projects=("c",), private_index=True),
                ["install T/c"],
            ),
        ],
    )
    def test_hashes_and_versions_without_one_are_installed_by_two_commands(
        self, declaration: DependencyDeclaration, commands: list[str]
    ) -> None:
        text = (
            dockerfile("base", declaration)
            .replace("/workspace/declared", "D")
            .replace("/workspace/tree", "T")
        )
        last = text.partition("    fi; \\\n    ")[2].removesuffix("\nWORKDIR /app\nUSER 65532:65532\n")
        assert last.split(" \\\n    && ") == commands

    @pytest.mark.parametrize(
        ("private_index", "bundle", "settings"),
        [
            (False, "", ""),
            (False, "/ca", " PIP_CERT=/ca SSL_CERT_FILE=/ca"),
            (
                True,
                "/ca",
                " PIP_NO_INDEX=1 PIP_FIND_LINKS=/workspace/wheels UV_NO_INDEX=1 "
                "UV_FIND_LINKS=/workspace/wheels PIP_CERT=/ca SSL_CERT_FILE=/ca",
            ),
        ],
    )
    def test_installers_get_the_index_and_the_certificates(
        self, private_index: bool, bundle: str, settings: str
    ) -> None:
        declaration = DependencyDeclaration("r", ("a",), private_index=private_index)
        text = dockerfile("base", declaration, bundle)
        assert f"PIP_DISABLE_PIP_VERSION_CHECK=1{settings}; \\\n" in text
        assert ("UV_DEFAULT_INDEX=" in text) is not private_index
        assert '--compile-bytecode "$@"; }; \\\n' in text

    def test_files_of_crews_belong_to_the_user_of_runs(self) -> None:
        text = dockerfile("base", DependencyDeclaration(""))
        assert "chown 65532:65532 /app/artifacts /home/crew\n" in text and "crew:x:65532:65532:" in text

    def test_several_indexes_are_read_as_pip_does(self) -> None:
        for lines, best in ((("a",), False), (("a", "--extra-index-url https://index.example.com"), True)):
            text = dockerfile("base", DependencyDeclaration("r", lines))
            assert ("--compile-bytecode --index-strategy unsafe-best-match " in text) == best

    def test_lines_with_hashes_require_them_and_projects_do_not(self) -> None:
        declaration = DependencyDeclaration("r", ("a==1 --hash=sha256:00",), projects=("x",))
        text = dockerfile("base", declaration)
        assert "install -r /workspace/declared/requirements.txt --require-hashes" in text
        assert text.count("--require-hashes") == 1

    def test_no_install_without_dependencies(self) -> None:
        text = dockerfile("python:3.11-slim", DependencyDeclaration(""))
        assert "COPY" not in text
        assert "pip" not in text


@pytest.mark.parametrize(
    ("log", "reason", "part"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement nope==9 (from versions: none)\n"
            "ERROR: No matching distribution found for nope==9\nerror building image: exit status 1\n",
            "DependencyResolution",
            "no version of nope==9",
        ),
        (
            "ERROR: Cannot install a==1 and b==2 because these package versions have "
            "conflicting dependencies.\n"
            "ERROR: ResolutionImpossible: for help visit",
            "DependencyResolution",
            "a==1 and b==2 conflict",
        ),
        ("ERROR: Invalid requirement: 'a=!1': Expected end", "DependencyResolution", "a=!1"),
        ("error building image: disk quota exceeded\n", "BuildFailed", "disk quota exceeded"),
        ("", "BuildFailed", "printed nothing"),
    ],
)
def test_dependency_failure_of_real_logs(log: str, reason: str, part: str) -> None:
    error = dependency_failure(log)
    assert error.reason == reason
    assert part in error.message
