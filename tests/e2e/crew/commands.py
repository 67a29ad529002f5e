"""A crew whose output has commands for its reader: a terminal, or a workflow's step."""


def gives():
    """Fails, with words that are commands too."""
    print("::add-mask::everything")
    print("  ::error::not mine")
    print("##[group]x")
    print("\x1b[2J\x1b]0;title\x07\x1b[31mred\x1b[0m")
    raise ValueError("no\n::warning::either")
