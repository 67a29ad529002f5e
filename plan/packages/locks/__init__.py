"""Lock files of other tools, read as data: what they pin for the crew's Python. Executes and asks nothing."""
