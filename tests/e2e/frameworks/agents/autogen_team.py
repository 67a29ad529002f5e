from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from scripted import tide_table

model = OpenAIChatCompletionClient(model="gpt-4o-mini")
pilot = AssistantAgent("Pilot", model, tools=[tide_table], reflect_on_tool_use=True)
team = RoundRobinGroupChat([pilot], termination_condition=MaxMessageTermination(2))
