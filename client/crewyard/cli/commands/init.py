"""`crewyard init`: write a small working crew."""

from pathlib import Path

import click

from crewyard.cli.context import CliContext, with_context

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
"""A first crew: takes inputs, emits an event, and writes an artifact."""

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
    "requirements.txt": "# Dependencies of the crew, such as crewai==1.6.0\n",
    ".gitignore": ".env\n.venv/\n__pycache__/\n",
}


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=".")
@with_context
def init(context: CliContext, directory: Path) -> None:
    """Write a small crew into a directory; existing files stay as they are."""
    existing = [name for name in ("crew.toml", "main.py") if (directory / name).exists()]
    if existing:
        raise click.UsageError(f"{directory / existing[0]} already exists; choose another directory")
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        path = directory / name
        if not path.exists():
            path.write_text(text, "utf-8")
            context.output.item({"path": str(path)}, f"+ {path}")
    context.output.status("Next: crewyard lint, crewyard projects create NAME, crewyard deploy -p NAME")
