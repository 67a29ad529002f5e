"""Schemas of classes: what an annotation allows, which fields are required, where reading ends."""

import ast

import pytest

from plan.inputs.class_schema import class_schema
from plan.inputs.classes import Source, classes_of

INT = {"type": "integer"}


def schema_of(text, name="Input", partial=False):
    return class_schema(name, classes_of(ast.parse(text), "main.py", Source({}, "3.11", [""])), partial)


def an_object(properties, required=()):
    return {
        "type": "object",
        "properties": properties,
        **({"required": list(required)} if required else {}),
    }


@pytest.mark.parametrize(
    ("annotation", "schema", "required"),
    [
        ("int", INT, True),
        ("builtins.int", INT, True),
        ("Required[int]", INT, True),
        ("NotRequired[int]", INT, False),
        ("typing.Optional[int]", INT, False),
        ("Union[int, None]", INT, False),
        ("Union[int]", INT, True),
        ("Union[int, str]", {}, True),
        ("Union[int, str, None]", {}, False),
        ("None | int", INT, False),
        ("int | str", {}, True),
        ("int | str | None", {}, False),
        ("Annotated[int | None, 'x']", INT, False),
        ("'int'", INT, True),
        ("'not an ('", {}, True),
        ("...", {}, True),
        ("List[int]", {"type": "array", "items": INT}, True),
        ("Sequence[Any]", {"type": "array"}, True),
        ("list", {"type": "array"}, True),
        ("Mapping[str, int]", {"type": "object"}, True),
        ("Queue[int]", {}, True),
        # The kube-apiserver drops a null of the plan.
        ("Literal['a', 1, None]", {"enum": ["a", 1]}, False),
        ("Literal[None]", {}, False),
        ("Literal[-1, 0, True, 0.5]", {"enum": [-1, 0, True, 0.5]}, True),
        ("Literal['a', NAME]", {}, True),
        ("Literal[Style.SHORT]", {}, True),
        ("Literal['a', b'a']", {}, True),
        ("Literal[1e999]", {}, True),
        ("Literal['a', ...]", {}, True),
        ("Literal[{[]: 1}]", {}, True),
        ("Elsewhere", {}, True),
    ],
)
def test_annotation_tells_type_and_whether_a_value_is_required(annotation, schema, required):
    text = f"class Input(TypedDict):\n    field: {annotation}\n"
    assert schema_of(text) == an_object({"field": schema}, ["field"] if required else [])


@pytest.mark.parametrize(
    ("value", "more", "required"),
    [
        ("", {}, True),
        (" = 3", {"default": 3}, False),
        (" = 0.5", {"default": 0.5}, False),
        (" = 1e999", {}, False),
        (" = Field(1e999)", {}, False),
        (" = False", {"default": False}, False),
        (" = None", {}, False),
        (" = make()", {}, False),
        (" = Field()", {}, True),
        (" = Field(...)", {}, True),
        (" = Field('x')", {"default": "x"}, False),
        (" = Field(make())", {}, False),
        (" = pydantic.Field(default='x', description='A.')", {"default": "x", "description": "A."}, False),
        (" = Field(description='A.')", {"description": "A."}, True),
        (" = Field(description=TEXT)", {}, True),
        (" = Field(description=3)", {}, True),
        (" = Field(default_factory=list, gt=0)", {}, False),
        (" = Field(gt=0)", {}, True),
        (" = field(default=3)", {}, False),
    ],
)
def test_value_of_a_field_tells_default_and_description(value, more, required):
    text = f"class Input(BaseModel):\n    field: Any{value}\n"
    assert schema_of(text) == an_object({"field": more}, ["field"] if required else [])


@pytest.mark.parametrize(
    ("head", "partial", "required"),
    [
        ("class Input(TypedDict)", False, True),
        ("class Input(TypedDict)", True, False),
        ("class Input(typing.TypedDict, total=False)", False, False),
        ("class Input(TypedDict, total=True)", False, True),
        ("class Input(TypedDict, total=0)", False, True),
        ("class Input(TypedDict, total=PARTIAL)", False, True),
        ("class Input(TypedDict, closed=False)", False, True),
        ("class Input(BaseModel)", True, True),
        ("class Input(BaseModel, total=False)", False, True),
        ("class Input", True, True),
        ("class Base(TypedDict): ...\nclass Input(Base)", True, False),
        ("class Top(TypedDict): ...\nclass Base(Other, Top): ...\nclass Input(Base)", True, False),
        ("class Base(BaseModel): ...\nclass Input(Base)", True, True),
        ("class Base(Base): ...\nclass Input(Base)", True, True),
        ("class Base(Input): ...\nclass Input(Base)", True, True),
    ],
)
def test_only_a_typed_dict_may_require_nothing(head, partial, required):
    text = f"{head}:\n    field: int\n"
    assert schema_of(text, partial=partial) == an_object({"field": INT}, ["field"] if required else [])


def test_fields_of_bases_come_first_and_private_ones_are_no_input():
    text = (
        "class Base(BaseModel):\n    a: int\n    b: int = 1\nclass More(BaseModel):\n    a: int\n    e: int\n"
        "class Input(Elsewhere, Base, More):\n    _own: int\n    kind: ClassVar[int] = 1\n    b: str\n"
        "    c: int\n    d = 1\n    e.f: int\n    def run(self): ...\n"
    )
    assert schema_of(text) == an_object(
        {"a": INT, "b": {"type": "string"}, "e": INT, "c": INT}, ["a", "e", "b", "c"]
    )


@pytest.mark.parametrize(
    ("inherited", "own", "required"),
    [("int", "int", ["b", "a"]), ("int", "int = 1", ["b"]), ("int = 1", "int", ["b", "a"])],
)
def test_own_field_decides_once_whether_it_is_required(inherited, own, required):
    text = f"class Base(BaseModel):\n    a: {inherited}\n    b: int\nclass Input(Base):\n    a: {own}\n"
    assert schema_of(text)["required"] == required


@pytest.mark.parametrize("text", ["", "class Input: ...\n", "class Input:\n    a = 1\n    _b: int\n"])
def test_class_without_fields_has_no_schema(text):
    assert schema_of(text) is None


@pytest.mark.parametrize(
    "nest",
    [
        "Optional[{}]".format,
        "Annotated[{}, 1]".format,
        "Union[{}, None]".format,
        "{} | None".format,
        repr,
    ],
)
def test_annotation_is_read_to_the_third_level(nest):
    third = nest(nest(nest("int")))
    fields = schema_of(f"class Input:\n    a: {third}\n    b: {nest(third)}\n")["properties"]
    assert fields == {"a": INT, "b": {}}


def test_items_and_classes_are_read_to_the_fourth_level():
    text = (
        "class Input(BaseModel):\n    a: list[list[list[int]]]\n    b: list[list[list[list[int]]]]\n"
        "    c: C\nclass C(BaseModel):\n    d: D\n    e: list[list[int]]\n"
        "class D(BaseModel):\n    f: int\n    g: C\n"
    )
    array = {"type": "array"}
    three = {**array, "items": {**array, "items": array}}
    inner = an_object({"f": {}, "g": {}}, ["f", "g"])
    assert schema_of(text)["properties"] == {
        "a": {**array, "items": {**array, "items": {**array, "items": INT}}},
        "b": {**array, "items": three},
        "c": an_object({"d": inner, "e": {**array, "items": array}}, ["d", "e"]),
    }


def test_bases_are_read_to_the_fourth_level():
    text = "".join(
        f"class {name}({base}):\n    {name.lower()}: int\n"
        for name, base in zip("ABCDEF", "BCDEFG", strict=True)
    )
    expected = {"e": {}, "d": INT, "c": INT, "b": INT, "a": INT}
    assert schema_of(text, "A") == an_object(expected, list(expected))


@pytest.mark.parametrize(("others", "is_read"), [(19, True), (20, False)])
def test_twenty_bases_of_a_class_are_read(others, is_read):
    bases = "X, " * others
    base = f"class Base:\n    a: int\nclass Input({bases}Base):\n    b: int\n"
    assert ("a" in schema_of(base)["properties"]) is is_read
    assert (
        "required" not in schema_of(f"class Input({bases}TypedDict):\n    b: int\n", partial=True)
    ) is is_read


def test_reading_ends_after_five_hundred_steps():
    fields = "".join(f"    f{number}: int\n" for number in range(600))
    known = [schema for schema in schema_of(f"class Input:\n{fields}")["properties"].values() if schema]
    assert known == [INT] * 499
