"""The smallest crew: a function that takes the input and returns the output."""

from pathlib import Path

from crewyard_runtime import emit


def kickoff(inputs):
    name = inputs.get("name", "world")
    print(f"hello, {name}")
    emit("greeting", name=name)
    Path("artifacts/greeting.txt").write_text(f"hello, {name}\n", encoding="utf-8")
    return {"greeting": f"hello, {name}"}
