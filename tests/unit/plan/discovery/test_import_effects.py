"""What a module does when it is imported: it runs an agent, is a script, or talks."""

import ast

import pytest

from plan.discovery.command_lines import command_lines
from plan.discovery.import_effects import is_main_guard, is_script, line_of_run_on_import, talks_on_import

GUARD = "if __name__ == '__main__':\n    "


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("crew.kickoff()", 1),
        ("x = 1\nprint(*[make(y).ainvoke() for y in z])", 2),
        ("if x:\n    crew.kickoff()\ncrew.kickoff()", 2),
        ("crew.kickoff()\nif x:\n    crew.kickoff()", 1),
        ("f(a.kickoff(),\nb.kickoff())", 1),
        ("class A:\n    x = crew.kickoff()", 2),
        ("asyncio.run(main())", 1),
        ("graph = builder.compile()\ngraph.stream({})", 2),
        ("a = b = Agent()\nb.run('x')", 2),
        ("team = RoundRobinGroupChat([])\nteam.run_stream()", 2),
        ("agent = create_react_agent(m)\nagent('x')", 2),
        ("x = make()\nx.run()\nx('y')\nos.run()\nmake().run()", None),
        ("x.y = Agent()\nz: int = Agent()\nz.run()\ny.run()", None),
        ("kickoff()\nx[0]()", None),
        ("def f():\n    crew.kickoff()", None),
        ("async def f():\n    crew.kickoff()", None),
        ("f(lambda: crew.kickoff())", None),
        (f"{GUARD}crew.kickoff()", None),
        (f"def f(): ...\n{GUARD}main()\ncrew.kickoff()", 4),
    ],
)
def test_first_line_that_runs_an_agent_on_import_is_found(code: str, line: int | None) -> None:
    tree = ast.parse(code)
    assert line_of_run_on_import(tree) == line
    assert is_script(tree) is (line is not None or GUARD in code)


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("__name__ == '__main__'", True),
        ('"__main__" == __name__', True),
        ("__name__ is '__main__'", True),
        ("'__main__' in __name__", True),
        ("__name__ != '__main__'", False),
        ("__name__ == '__main__' == x", False),
        ("__name__ == 'main'", False),
        ("name == '__main__'", False),
        ("__name__", False),
    ],
)
def test_main_guard_compares_the_module_name(test: str, expected: bool) -> None:
    assert is_main_guard(ast.parse(f"if {test}: ...").body[0]) is expected
    assert not is_main_guard(ast.parse(f"while {test}: ...").body[0])


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print('x')", True),
        ("while (line := input()) != 'q': ...", True),
        ("x = 1\nfor y in z:\n    pprint(y)", True),
        ("def f(): ...\nprint()\ndef g(): ...", True),
        ("console.print()\nf()\nx[0]()", False),
        ("def f():\n    print()", False),
        ("async def f():\n    print()", False),
        ("class A:\n    print()", False),
        ("f(lambda: print())", False),
        ("try:\n    import a\nexcept ImportError:\n    print()", False),
        (f"{GUARD}print()", False),
        (f"{GUARD}f()\nprint()", True),
        ("print()\ntry: ...\nfinally: ...", True),
    ],
)
def test_module_talks_where_it_prints_or_asks_outside_of_functions(code: str, expected: bool) -> None:
    assert talks_on_import(ast.parse(code)) is expected


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("import typer\napp = typer.Typer()\nother = typer.Option()", ["app"]),
        ("from typer import Typer as T, Typer\napp = T()\nmore = Typer()", ["more"]),
        ("import click\n@click.group()\ndef cli(): ...\n@cli.command()\ndef x(): ...", ["cli"]),
        ("from click import command\n@mark\n@command\ndef run(): ...\ndef x(): ...", ["run"]),
        ("import rich_click as click\n@click.command('x')\ndef run(): ...", ["run"]),
        ("import click\n@click.option()\ndef run(): ...\n@make[0].command\ndef x(): ...", []),
        ("from mine import command, Typer\n@command\ndef run(): ...\napp = Typer()", []),
        ("import typer\na = b = typer.Typer()\nclass A: ...", []),
    ],
)
def test_command_lines_of_click_and_typer_are_found(code: str, names: list[str]) -> None:
    assert list(command_lines(ast.parse(code))) == names
