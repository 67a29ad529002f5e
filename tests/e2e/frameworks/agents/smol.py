import os

from scripted import tide_table
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

model = OpenAIServerModel("scripted", api_base=os.environ["OPENAI_BASE_URL"], api_key="unused")
agent = ToolCallingAgent([tool(tide_table)], model, name="Pilot", max_steps=1)
