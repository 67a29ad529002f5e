"""Classes that a module imports from the source, and those of libraries that are known."""

import pytest

from plan.inputs.find import find_input_schema

STATE = "class State(TypedDict):\n    a: int\n"
FOUND = {"type": "object", "properties": {"a": {"type": "integer"}}}
GRAPH = "graph = StateGraph(State)\n"


class ReadPaths(dict[str, bytes]):
    """A source that keeps the paths that are read."""

    def __init__(self, files):
        super().__init__({path: text.encode() for path, text in files.items()})
        self.read = set()

    def __getitem__(self, path):
        self.read.add(path)
        return super().__getitem__(path)


def schema_of(files, entrypoint="main:graph", path="main.py"):
    return find_input_schema(ReadPaths(files), entrypoint, path, "3.11")


@pytest.mark.parametrize(
    ("code", "entrypoint", "path", "state"),
    [
        ("from state import State", "main:graph", "main.py", "state.py"),
        ("from state import State", "main:graph", "src/main.py", "src/state.py"),
        ("from state import State", "main:graph", "main.py", "src/state.py"),
        ("from state import State", "a/b/main.py", "a/b/main.py", "a/b/state.py"),
        ("from state import State", "a.main:graph", "a/main.py", "state.py"),
        ("from a.b.state import State", "a.main:graph", "a/main.py", "a/b/state.py"),
        ("from a.state import State", "a.main:graph", "x/lib/a/main.py", "x/lib/a/state.py"),
        ("from a.state import State", "a:graph", "x/lib/a/__init__.py", "x/lib/a/state.py"),
        ("from a import State", "a.main:graph", "a/main.py", "a/__init__.py"),
        ("from .state import State", "a.main:graph", "a/main.py", "a/state.py"),
        ("from .state import State", "a:graph", "a/__init__.py", "a/state.py"),
        ("from .b.state import State", "a.main:graph", "src/a/main.py", "src/a/b/state/__init__.py"),
        ("from ..state import State", "a.b.main:graph", "a/b/main.py", "a/state.py"),
        ("from . import State", "a.main:graph", "a/main.py", "a/__init__.py"),
        ("if TYPE_CHECKING:\n    from .state import State", "a.main:graph", "a/main.py", "a/state.py"),
        ("try:\n    from .state import State\nexcept ImportError:\n    from other import State",
         "a.main:graph", "a/main.py", "a/state.py"),
    ],
)  # fmt: skip
def test_state_is_found_in_the_module_that_it_is_imported_from(code, entrypoint, path, state):
    assert schema_of({path: f"{code}\n{GRAPH}", state: STATE}, entrypoint, path) == FOUND


@pytest.mark.parametrize(
    ("code", "path", "state"),
    [
        ("from state import State", "a/main.py", "a/state.py"),  # a.main is imported from the root
        ("from state import State", "a/main.py", "b/state.py"),
        ("from state import Other", "a/main.py", "state.py"),
        ("from state import State as Other", "a/main.py", "state.py"),
        ("from state import Other as State", "a/main.py", "state.py"),
        ("import state", "a/main.py", "state.py"),
        ("from .state import State", "a/main.py", "state.py"),
        ("from ..state import State", "a/main.py", "a/state.py"),
        ("from state.State import State", "a/main.py", "state.py"),
        ("from state import State", "a/main.py", "state.pyi"),
    ],
)
def test_class_of_a_module_that_is_not_imported_is_not_found(code, path, state):
    assert schema_of({path: f"{code}\n{GRAPH}", state: STATE}, "a.main:graph", path) is None


def test_class_of_the_module_comes_before_imported_ones():
    other = STATE.replace("a:", "b:")
    nested = f"from state import State\n{GRAPH}def f():\n    from other import State\n"
    assert schema_of({"main.py": f"{STATE}{GRAPH}from state import State", "state.py": other}) == FOUND
    assert schema_of({"main.py": nested, "state.py": STATE, "other.py": other}) == FOUND


def test_names_mean_what_their_own_module_imports():
    files = {
        "main.py": "from a.state import Base as State\nfrom wrong import Part\n" + GRAPH,
        "wrong.py": "class Part(BaseModel):\n    wrong: int\nclass Top(BaseModel): ...\n",
        "a/state.py": "from .part import Part as Item\nfrom top import Top\n"
        "class Base(Top):\n    item: Item\n    items: list[Item]\n    lost: Part\n",
        "a/part.py": "class Part(BaseModel):\n    a: int\nclass Item(BaseModel):\n    wrong: int\n",
        "top.py": "class Top(TypedDict):\n    top: str\n",
    }
    item = {**FOUND, "required": ["a"]}
    assert schema_of(files) == {
        "type": "object",
        "properties": {
            "top": {"type": "string"},
            "item": item,
            "items": {"type": "array", "items": item},
            "lost": {},
        },
    }


@pytest.mark.parametrize(
    ("code", "entrypoint", "required"),
    [
        ("def run(inputs: State): ...", "main:run", {"required": ["a"]}),
        ("class F(Flow[State]): ...", "main:F", {}),
        ("def make():\n    return StateGraph(input_schema=State)", "main:make", {}),
    ],
)
def test_parameters_flows_and_graphs_take_imported_classes(code, entrypoint, required):
    model = STATE.replace("State", "Model")
    files = {"main.py": f"from state import Model as State\n{code}", "state.py": model}
    assert schema_of(files, entrypoint) == {**FOUND, **required}


def forwarding(length):
    """Return modules of which each imports the class from the next; `length` imports lead to it."""
    chain = {f"m{number}.py": f"from m{number + 1} import State" for number in range(1, length)}
    return {"main.py": f"from m1 import State\n{GRAPH}", **chain, f"m{length}.py": STATE}


@pytest.mark.parametrize(("length", "expected"), [(1, FOUND), (2, FOUND), (5, FOUND), (6, None)])
def test_class_is_followed_through_five_imports(length, expected):
    assert schema_of(forwarding(length)) == expected


def test_modules_that_import_each_other_end():
    files = {"main.py": f"from m import State\n{GRAPH}", "m.py": "from main import State"}
    assert schema_of(files) is None


@pytest.mark.parametrize("modules", [20, 21])
def test_at_most_twenty_imported_modules_are_read(modules):
    imports = "".join(f"from m{number} import C{number}\n" for number in range(modules))
    fields = "".join(f"    f{number}: C{number}\n" for number in range(modules))
    files = {"main.py": f"{imports}class State(TypedDict):\n{fields}{GRAPH}"}
    files |= {f"m{number}.py": f"class C{number}(TypedDict):\n    a: int" for number in range(modules)}
    source = ReadPaths(files)
    schema = find_input_schema(source, "main:graph", "main.py", "3.11")
    assert [*map(bool, schema["properties"].values())] == [True] * 20 + [False] * (modules - 20)
    assert len(source.read) == 21


@pytest.mark.parametrize(("padding", "expected"), [(0, FOUND), (1, None)])
def test_at_most_one_mebibyte_of_imported_modules_is_read(padding, expected):
    first = "from m import State\n"
    size = (1 << 20) - len(first) - len(STATE) + padding
    files = {"main.py": f"from n import State\n{GRAPH}", "n.py": first, "m.py": f"{STATE}{'#' * size}"}
    assert schema_of(files) == expected


def test_only_modules_that_may_have_the_class_are_read():
    files = {
        "main.py": f"import a\nfrom b import x\nfrom state import State\n{GRAPH}",
        **dict.fromkeys(["a.py", "b.py", "x.py", "typing.py"], "raise SystemExit"),
        "state.py": f"from a import b\n{STATE}raise SystemExit",
    }
    source = ReadPaths(files)
    assert find_input_schema(source, "main:graph", "main.py", "3.11") == FOUND
    assert source.read == {"main.py", "state.py"}


@pytest.mark.parametrize("code", ["def broken(", "x = <syntax of a later Python>", "\0"])
def test_imported_module_that_cannot_be_read_has_no_classes(code):
    main = f"from state import Base\nclass State(Base, TypedDict):\n    a: int\n{GRAPH}"
    assert schema_of({"main.py": main, "state.py": code}) == FOUND


MESSAGES = {"messages": {"type": "array"}}


@pytest.mark.parametrize(
    ("code", "properties"),
    [
        ("from langgraph.graph import MessagesState\ngraph = StateGraph(MessagesState)", MESSAGES),
        ("from langgraph.graph import MessagesState as State\n" + GRAPH, MESSAGES),
        ("import langgraph\ngraph = StateGraph(langgraph.graph.MessagesState)", MESSAGES),
        (
            "from langgraph.graph import MessagesState\nclass State(MessagesState):\n    a: int\n" + GRAPH,
            {**MESSAGES, "a": {"type": "integer"}},
        ),
        ("from state import MessagesState\ngraph = StateGraph(MessagesState)", MESSAGES),
        ("from state import More as State\n" + GRAPH, {**MESSAGES, "b": {"type": "string"}}),
        (
            "class MessagesState(TypedDict):\n    a: int\ngraph = StateGraph(MessagesState)",
            FOUND["properties"],
        ),
    ],
)
def test_messages_state_of_langgraph_has_messages(code, properties):
    state = "from langgraph.graph import MessagesState\nclass More(MessagesState):\n    b: str\n"
    assert schema_of({"main.py": code, "state.py": state}) == {"type": "object", "properties": properties}


def test_messages_state_of_a_parameter_requires_messages():
    code = "from langgraph.graph import MessagesState\ndef run(inputs: MessagesState): ...\n"
    assert schema_of({"main.py": code}, "main:run") == {
        "type": "object",
        "properties": MESSAGES,
        "required": ["messages"],
    }
