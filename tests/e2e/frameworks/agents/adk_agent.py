from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types
from scripted import tide_table


class ScriptedLlm(BaseLlm):
    """A model that calls the only tool, then answers."""

    async def generate_content_async(self, llm_request, stream=False):
        parts = llm_request.contents[-1].parts
        if any(part.function_response for part in parts):
            answer = types.Part(text=f"A scripted answer to: {parts[0].function_response.response}")
        else:
            call = types.FunctionCall(name="tide_table", args={"harbour": "example"})
            answer = types.Part(function_call=call)
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=7, candidates_token_count=5, total_token_count=12
        )
        yield LlmResponse(content=types.Content(role="model", parts=[answer]), usage_metadata=usage)


agent = LlmAgent(
    name="Pilot", model=ScriptedLlm(model="scripted"), instruction="Look it up.", tools=[tide_table]
)
