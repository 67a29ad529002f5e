from scripted import tide_table  # isort: skip  (sets the variables that the SDK reads)
from agents import Agent, function_tool

agent = Agent(name="Pilot", instructions="Look it up.", tools=[function_tool(tide_table)])
