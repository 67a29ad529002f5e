"""Files of the runner in a crew's image."""

import py_compile

from build.image.runner_files import runner_files


def test_only_unchecked_compiled_modules_are_included(tmp_path):
    (tmp_path / "__main__.py").write_text("print(1)\n")
    (tmp_path / "wire.py").write_text("WIRE = 1\n")
    (tmp_path / "test_wire.py").write_text("")
    modes = py_compile.PycInvalidationMode
    py_compile.compile(str(tmp_path / "wire.py"), invalidation_mode=modes.UNCHECKED_HASH)
    py_compile.compile(str(tmp_path / "__main__.py"), invalidation_mode=modes.TIMESTAMP)
    names = [file.path.removeprefix("opt/crewyard/runner/") for file in runner_files(tmp_path)]
    assert [name for name in names if name.endswith(".py")] == ["__main__.py", "wire.py"]
    compiled = [name for name in names if name.endswith(".pyc")]
    assert len(compiled) == 1 and compiled[0].startswith("__pycache__/wire.cpython-")


def test_the_runner_itself_is_whole():
    names = {file.path for file in runner_files()}
    assert {"opt/crewyard/runner/__main__.py", "opt/crewyard/runner/child.py"} <= names
