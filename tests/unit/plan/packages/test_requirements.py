"""What `pip install -r` reads: lines, nested files, constraints and local paths."""

import pytest
from packaging.markers import Marker

from plan.errors import PlanError
from plan.packages.requirements import LocalRequirement, Requirements, logical_lines, read_requirements


def local(
    line: int, target: str, *extras: str, file: str = "req/main.txt", marker: Marker | None = None
) -> LocalRequirement:
    return LocalRequirement(f"{file} line {line}", "req", target, extras, marker)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            {
                "req/main.txt": "-rmore.txt\n-r = more.txt\n--constraint bounds.txt\na\n",
                "req/more.txt": "b\n-c below/bounds.txt\n--constraint=bounds.txt\n",
                "req/bounds.txt": "c<1\n-r more.txt\n",
                "req/below/bounds.txt": "d<1\n-r ../bounds.txt\n",
            },
            Requirements(["a", "b"], ["c<1", "d<1", "b"]),
        ),
        (
            {
                "req/main.txt": "-e .\n./libs/x[a, b,]\n-e file:../y\nz @ file:./z ; os_name == 'a'\n"
                "--editable=libs/w\n/abs\nfile:///abs\n-r sub/more.txt\n",
                "req/sub/more.txt": "\n..\n",
            },
            Requirements(
                local=[
                    local(1, "."),
                    local(2, "./libs/x", "a", "b"),
                    local(3, "../y"),
                    local(4, "./z", marker=Marker("os_name == 'a'")),
                    local(5, "libs/w"),
                    local(6, "/abs"),
                    local(7, "file:///abs"),
                    local(2, "..", file="req/sub/more.txt"),
                ]
            ),
        ),
        (
            {
                "req/main.txt": "-e \".[a]\"\n-e './libs/x' ; os_name == 'a'\n-e libs[b]\n--editable=libs\n"
                "-e 'a.whl\nlibs\n-r 'more.txt'\n-c=\"more.txt\"\n-e git+https://h/b.git\n",
                "req/more.txt": "b\n",
            },
            Requirements(
                ["-e 'a.whl", "libs", "-e git+https://h/b.git", "b"],
                ["b"],
                [
                    local(1, ".", "a"),
                    local(2, "./libs/x", marker=Marker("os_name == 'a'")),
                    local(3, "libs", "b"),
                    local(4, "libs"),
                ],
            ),
        ),
        (
            {"req/main.txt": "x[a, b] @ ./libs/x\nx[a]@ file:./libs/x[c] ; os_name == 'a'\n"},
            Requirements(
                local=[
                    local(1, "./libs/x", "a", "b"),
                    local(2, "./libs/x", "a", "c", marker=Marker("os_name == 'a'")),
                ]
            ),
        ),
        (
            {"req/main.txt": "a @ https://h/a.whl\ngit+https://h/b.git\n--pre\n"},
            Requirements(["a @ https://h/a.whl", "git+https://h/b.git", "--pre"]),
        ),
    ],
)
def test_files_are_read_as_by_pip(files: dict[str, str], expected: Requirements) -> None:
    data = {path: text.encode() for path, text in files.items()}
    assert read_requirements(data, "req/main.txt") == expected


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            "a \\\n  b # x\n\n# c\nc\\\n# d\ne#f \\\ng\\",
            [(1, "a b"), (5, "c"), (7, "e#f g")],
        ),
        ("# a \\\nb\n  # c\\\nd==1.\\\n16\n", [(2, "b"), (4, "d==1.16")]),
        ("a\\\n\nb\\\n", [(1, "a"), (3, "b")]),
        ("", []),
    ],
)
def test_logical_lines_have_the_number_of_their_first(text: str, lines: list[tuple[int, str]]) -> None:
    assert logical_lines(text) == lines


def test_at_most_32_files_are_read() -> None:
    files = {f"{at}.txt": f"-r {at + 1}.txt\n".encode() for at in range(1, 32)}
    assert read_requirements({**files, "32.txt": b"a\n"}, "1.txt").lines == ["a"]
    with pytest.raises(PlanError) as raised:
        read_requirements({**files, "32.txt": b"-r 33.txt\n", "33.txt": b"a\n"}, "1.txt")
    assert raised.value.message == "1.txt includes more than 32 files"


@pytest.mark.parametrize("target", ["gone.txt", "../main.txt", "https://h/more.txt"])
def test_a_nested_file_must_be_in_the_source(target: str) -> None:
    with pytest.raises(PlanError) as raised:
        read_requirements({"main.txt": f"a\n-r {target}\n".encode()}, "main.txt")
    assert raised.value.reason == "ConfigInvalid"
    assert raised.value.message == f"main.txt line 2: {target} is not a file of the source"
