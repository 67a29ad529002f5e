from scripted import tide_table  # isort: skip  (sets the variables that the model reads)
from pydantic_ai import Agent

agent = Agent("openai:scripted", name="Pilot", tools=[tide_table])
