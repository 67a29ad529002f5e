"""Options of one call besides the input: what LangGraph takes as config and context. Used by `call`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class CallOptions:
    """Options of a call. `config` and `context` are those of the run, None if it has none."""

    __slots__ = ("config", "context", "framework", "run_id")

    def __init__(
        self,
        run_id: str = "",
        framework: str = "python",
        config: Mapping[str, object] | None = None,
        context: Mapping[str, object] | None = None,
    ) -> None:
        self.run_id = run_id
        self.framework = framework
        self.config = config
        self.context = context

    def graph_config(self) -> dict[str, object]:
        """Return the config of a graph: that of the run, with the run's id as the default of `thread_id`."""
        config = dict(self.config or {})
        configurable = config.get("configurable")
        own = configurable if isinstance(configurable, dict) else {}
        config["configurable"] = {**({"thread_id": self.run_id} if self.run_id else {}), **own}
        return config

    @property
    def names(self) -> str:
        """The names of the options that the run has, for messages."""
        return " and ".join(name for name in ("config", "context") if getattr(self, name) is not None)
