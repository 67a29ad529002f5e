"""A scripted model, so the example needs no key and no network.

It responds like a model without function calling: first with the tool to use, then with the tool's result. It
counts words instead of tokens.
"""

import re

from crewai import BaseLLM
from crewai.events.types.llm_events import LLMCallType
from crewai.llms.base_llm import llm_call_context


class ScriptedModel(BaseLLM):
    def call(
        self,
        messages,
        tools=None,
        callbacks=None,
        available_functions=None,
        from_task=None,
        from_agent=None,
        response_model=None,
    ):
        said = messages if isinstance(messages, str) else "\n".join(str(one["content"]) for one in messages)
        with llm_call_context():
            self._emit_call_started_event(messages, from_task=from_task, from_agent=from_agent)
            answer = _answer(said)
            usage = {"prompt_tokens": len(said.split()), "completion_tokens": len(answer.split())}
            usage["total_tokens"] = sum(usage.values())
            self._track_token_usage_internal(usage)
            self._emit_call_completed_event(
                answer, LLMCallType.LLM_CALL, from_task=from_task, from_agent=from_agent, usage=usage
            )
        return answer

    def get_input_tokens_count(self, messages, tools=None, response_model=None):
        return len(str(messages).split())


def _answer(said: str) -> str:
    """Look up the harbour; if the table does not have it, look up Bristol."""
    asked = re.search(r"tide of (.+?)\.", said)
    observed = re.findall(r"Observation: *(.+)", said[asked.end() :] if asked else "")
    if observed and observed[-1].startswith("{"):
        return f"Thought: I know it now.\nFinal Answer: {observed[-1]}"
    harbour = asked[1] if asked and not observed else "Bristol"
    return f'Thought: I look it up.\nAction: tide_table\nAction Input: {{"harbour": "{harbour}"}}'
