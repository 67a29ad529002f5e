"""A scripted chat model, so the example needs no key and no network.

It counts words instead of tokens. For a real model, use `init_chat_model("openai:…")` instead and put its key
into the project's variables. Nothing else changes.
"""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class ScriptedModel(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages, stop=None, run_manager=None, **kwargs) -> ChatResult:
        asked = messages[-1].text
        topic = asked.partition(" on ")[2].strip(".")
        answer = f"What are {topic}?\nWho works in {topic}?\nWhat do {topic} make?"
        read, written = len(asked.split()), len(answer.split())
        message = AIMessage(
            answer,
            response_metadata={"model_name": "scripted"},
            usage_metadata={"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])
