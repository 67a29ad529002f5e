"""Every CLI command with its options, from the program. Pure.

Called by `dev.site.sections`; tests check that every command and option has help text.
"""

from collections.abc import Iterable

import click

from dev.site.text import cell, code, table

_EVERYWHERE = ("--json", "--help")


def walk(command: click.Command, name: str) -> Iterable[tuple[str, click.Command]]:
    """Yield the leaf commands of a program with their full names."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for part, child in command.commands.items():
        yield from walk(child, f"{name} {part}")


def render(program: click.Command, name: str) -> str:
    """Return one section per command."""
    return "\n".join(_section(words, command) for words, command in walk(program, name))


def options(program: click.Command) -> str:
    """Return the program's global options, which precede a command."""
    return table(("option", "meaning"), [_option(option) for option in _options(program)])


def undescribed(program: click.Command, name: str) -> list[str]:
    """Return commands and options without help."""
    missing = [words for words, command in walk(program, name) if not command.help]
    for words, command in walk(program, name):
        missing += [f"{words} {'/'.join(option.opts)}" for option in _options(command) if not _help(option)]
    return missing


def _section(words: str, command: click.Command) -> str:
    usage = " ".join([words, *command.collect_usage_pieces(click.Context(command))])
    about = " ".join((command.help or "").split("\n\n")[0].split())
    more = [" ".join(part.split()) for part in (command.help or "").split("\n\n")[1:]]
    rows = [_option(option) for option in _options(command) if option.opts[0] not in _EVERYWHERE]
    parts = [
        f"### {words}\n",
        f"```\n{usage}\n```\n",
        *(f"{cell(part)}\n" for part in (about, *more) if part),
    ]
    return "\n".join([*parts, table(("option", "meaning"), rows)] if rows else parts)


def _options(command: click.Command) -> list[click.Option]:
    return [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
    ]


def _option(option: click.Option) -> tuple[str, str]:
    value = "" if option.is_flag else " " + option.make_metavar(click.Context(click.Command("")))
    names = ", ".join(code(name + value) for name in option.opts)
    default = (
        f" Default {code(option.default)}." if isinstance(option.default, int) and not option.is_flag else ""
    )
    return names, cell(_help(option)) + (" Required." if option.required else "") + default


def _help(option: click.Option) -> str:
    return option.help or ""
