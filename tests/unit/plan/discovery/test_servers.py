"""Programs that serve until they are stopped, as opposed to those that end."""

import ast

import pytest

from plan.discovery.frameworks import imported_packages, is_framework
from plan.discovery.servers import has_application, uses_server

GUARD = "if __name__ == '__main__':\n    "


@pytest.mark.parametrize(
    ("code", "uses", "serves"),
    [
        ("import fastapi\napp = FastAPI()", True, True),
        ("from agno.os import AgentOS\napp = AgentOS().get_app()", True, True),
        ("import fastapi\napp = make()", True, False),
        ("import fastapi\nFastAPI()", True, False),
        ("import streamlit", True, True),
        ("import uvicorn.config", True, False),
        (f"import uvicorn\n{GUARD}main()", True, True),
        (f"{GUARD}import uvicorn", True, True),
        ("import gradio\npage.launch()", True, True),
        ("import gradio\npage.open()", True, False),
        ("import gradio\ndef f(): page.launch()", True, False),
        ("import fastapi\npage.launch()", True, False),
        ("app.run(debug=True)\ndef f(): ...", True, False),
        ("application.run(debug=False)", True, False),
        ("with f():\n    print(tides.launch(host='0.0.0.0'))", True, False),
        (f"{GUARD}make().run(port=1)", True, True),
        ("app.run()", False, False),
        ("app.start(port=1)", False, False),
        ("app.run('tides', debug=True)", False, False),
        ("crew.run(debug=True)", False, False),
        ("make().run(debug=True)", False, False),
        ("run(port=1)", False, False),
        ("def f(): app.run(port=1)", False, False),
        ("async def f(): app.run(port=1)", False, False),
        ("class A:\n    x = app.run(port=1)", False, False),
        ("f(lambda: app.run(port=1))\ng(1)", False, False),
    ],
)
def test_server_is_recognized_by_its_packages_and_calls(code: str, uses: bool, serves: bool) -> None:
    tree = ast.parse(code)
    imported = imported_packages(tree)
    assert (uses_server(tree, imported), has_application(tree, imported)) == (
        uses,
        serves or code.startswith("if "),
    )


@pytest.mark.parametrize(
    ("code", "packages"),
    [
        ("import a.b.c as d, e", {"a", "a.b", "e"}),
        ("from a.b.c import d\nfrom .x import y\nfrom . import z", {"a", "a.b"}),
        ("x = 1\nif x:\n    import a\nelse:\n    import b", {"a"}),
        ("try:\n    import a\nexcept ImportError: ...\ndef f():\n    import b\nimport c", {"c"}),
    ],
)
def test_imported_packages_are_those_at_the_top_level(code: str, packages: set[str]) -> None:
    assert imported_packages(ast.parse(code)) == packages


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("crewai", True),
        ("google.adk", True),
        ("langchain_openai", True),
        ("langgraph_swarm", True),
        ("llama_index", True),
        ("google", False),
        ("langchains", False),
        ("mine_llama_index", False),
    ],
)
def test_framework_is_recognized_by_its_package(package: str, expected: bool) -> None:
    assert is_framework(package) is expected
