"""The arguments that a callable accepts. Called by `call`.

Reads a plain function from its code object: for small crews, importing `inspect` would take longer than
everything else between the grant and the first line of output.
"""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_STAR, _NAMED = 0x04, 0x08  # flags of a code object


class AcceptedArguments:
    """`names` are accepted as keywords, `positional` by position; `required` have no default.

    `star` is *args, `named` is **kwargs.
    """

    __slots__ = ("named", "names", "positional", "required", "star")

    def __init__(
        self, names: list[str], positional: list[str], required: list[str], star: bool, named: bool
    ) -> None:
        self.names = names
        self.positional = positional
        self.required = required
        self.star = star
        self.named = named


def accepted_arguments(function: Callable[..., object]) -> AcceptedArguments | None:
    """Return the accepted arguments; None if unknown, as for some built-in functions."""
    plain, bound = (function.__func__, 1) if isinstance(function, MethodType) else (function, 0)
    if isinstance(plain, FunctionType) and not {"__wrapped__", "__signature__"} & plain.__dict__.keys():
        return _of_code(plain.__code__, len(plain.__defaults__ or ()), set(plain.__kwdefaults__ or ()), bound)
    return _of_signature(function)


def _of_code(code: CodeType, defaults: int, defaulted: set[str], bound: int) -> AcceptedArguments:
    count = code.co_argcount
    by_place = list(code.co_varnames[:count])
    by_name = list(code.co_varnames[count : count + code.co_kwonlyargcount])
    required = by_place[bound : count - defaults] + [name for name in by_name if name not in defaulted]
    names = by_place[max(bound, code.co_posonlyargcount) :] + by_name
    star, named = bool(code.co_flags & _STAR), bool(code.co_flags & _NAMED)
    return AcceptedArguments(names, by_place[bound:], required, star, named)


def _of_signature(function: Callable[..., object]) -> AcceptedArguments | None:
    import inspect

    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    kinds = inspect.Parameter
    ordinary = [
        parameter
        for parameter in parameters
        if parameter.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]
    return AcceptedArguments(
        [parameter.name for parameter in ordinary if parameter.kind is not kinds.POSITIONAL_ONLY],
        [parameter.name for parameter in ordinary if parameter.kind is not kinds.KEYWORD_ONLY],
        [parameter.name for parameter in ordinary if parameter.default is kinds.empty],
        any(parameter.kind is kinds.VAR_POSITIONAL for parameter in parameters),
        any(parameter.kind is kinds.VAR_KEYWORD for parameter in parameters),
    )
