"""A scripted model, so the example needs no key and no network.

It responds like a model without function calling: first with the tool to use, then with the final answer. It
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
    asked = re.search(r"next high water of (.+?)\.", said)
    if asked is None or "report on" in said:
        harbour = re.search(r"report on (.+?) for a skipper", said)
        found = re.search(r"\w+: depth .+", said)
        name, facts = (harbour[1] if harbour else "a harbour"), (found[0] if found else "nothing is known")
        return f"Thought: I know enough.\nFinal Answer: # {name}\n\n{facts}. Mind the current."
    seen = re.search(r"Observation: (.+)", said[asked.end() :])
    if seen is None:
        return f'Thought: I look it up.\nAction: tide_table\nAction Input: {{"harbour": "{asked[1]}"}}'
    return f"Thought: I know it now.\nFinal Answer: {asked[1]}: {seen[1]}"
