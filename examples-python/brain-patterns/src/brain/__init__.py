"""Tools for models, written as plain Python functions.

``brain.patterns`` has the decorator, the agent and the context of a call; ``brain.providers`` has what answers an agent;
``brain.build`` compiles a tool to a component for Brain's sandbox.
"""
