"""`crewyard init`: a crew that runs, to begin with."""

from pathlib import Path

import click

from crewyard.cli.context import Context, with_context

FILES = {
    "crew.toml": """\
# How Crewyard builds and runs this crew.
[deployment]
framework = "python"      # or crewai, langgraph
entrypoint = "main:kickoff"

[run]
timeout = "10m"
# env_required = ["OPENAI_API_KEY"]   # set with: crewyard env set OPENAI_API_KEY
""",
    "main.py": '''\
"""A crew to begin with: it takes inputs, says what it does, and leaves a file."""

from pathlib import Path

from crewyard_runtime import emit


def kickoff(inputs):
    topic = inputs.get("topic", "boats")
    print(f"thinking about {topic}")
    emit("note", text=f"{topic} float")
    report = Path("/app/artifacts/report.md")
    report.write_text(f"# {topic}\\n\\nThey float.\\n")
    return {"topic": topic, "report": report.name}
''',
    "requirements.txt": "# What the crew needs, such as crewai==1.6.0\n",
    ".gitignore": ".env\n.venv/\n__pycache__/\n",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=".")
@with_context
def init(context: Context, directory: Path) -> None:
    """Writes a small crew into a directory; what is there is left alone."""
    there = [name for name in ("crew.toml", "main.py") if (directory / name).exists()]
    if there:
        raise click.UsageError(f"{directory / there[0]} is there already; choose another directory")
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        place = directory / name
        if not place.exists():
            place.write_text(text, "utf-8")
            context.output.item({"path": str(place)}, f"+ {place}")
    context.output.say("Next: crewyard lint, crewyard projects create NAME, crewyard deploy -p NAME")
