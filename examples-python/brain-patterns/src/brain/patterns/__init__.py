"""Tools from functions, the agent that uses them, and the context of a call.

Example::

    from brain.patterns import ReActAgent, tool

    @tool("Search local notes")
    def search(query: str) -> str:
        return f"[results: {query}]"

    print(ReActAgent(tools={"search": search}).run("Summarize the notes").answer)
"""

from .agents import AgentResult, AgentStep, ReActAgent
from .context import Context, Record, Reply, WithContent, current_context, use_context, workspace_path
from .errors import ToolError
from .tools import ToolSpec, tool, tools_to_dict, tools_to_openai_schemas

__all__ = [
    "AgentResult",
    "AgentStep",
    "Context",
    "ReActAgent",
    "Record",
    "Reply",
    "ToolError",
    "ToolSpec",
    "WithContent",
    "current_context",
    "tool",
    "tools_to_dict",
    "tools_to_openai_schemas",
    "use_context",
    "workspace_path",
]
