"""An agent that asks a model, calls the tools that it names, and shows it what they brought."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..providers.local_echo import LocalEchoProvider
from ..providers.provider import Message, Provider, ToolCall, ToolResult
from ..schema.json_values import json_text
from ..schema.signature import call_by_name, ended
from .context import Context, current_context, use_context
from .tools import ToolSpec, parameters_of, spec_of


@dataclass(frozen=True)
class AgentStep:
    """One answer of the model, with what its calls brought, in their order."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class AgentResult:
    """What a run came to.

    :ivar answer: the model's last text
    :ivar steps: all its answers
    :ivar completed: False when it still wanted tools after the last step that it had
    """

    answer: str
    steps: list[AgentStep] = field(default_factory=list)
    completed: bool = True


class ReActAgent:
    """Reasons and acts in turn: one answer of the model, the calls that it wants, the next answer.

    :param tools: by the name that the model calls them by; tools and plain callables, whose docstring describes them
    :param provider: what answers; default: :class:`LocalEchoProvider`
    :param max_steps: how many answers of the model a run may take
    :raises ValueError: for a name that providers refuse
    """

    def __init__(
        self, tools: Mapping[str, Callable[..., Any]], provider: Provider | None = None, *, max_steps: int = 10
    ):
        if not isinstance(tools, Mapping):
            raise TypeError(
                "Cannot make an agent: tools must be a dict of callables by name, as tools_to_dict() gives it"
            )
        if max_steps < 1:
            raise ValueError(f"Cannot make an agent: max_steps must be at least 1, not {max_steps}")
        self.tools = dict(tools)
        self._specs = {name: spec_of(name, fn) for name, fn in tools.items()}
        self._provider = LocalEchoProvider() if provider is None else provider
        self._max_steps = max_steps

    def run(self, task: str) -> AgentResult:
        """Works on a task until the model answers without a call.

        :raises ProviderError: what the provider raises. What tools raise is told to the model.
        """
        messages = [Message("user", task)]
        steps: list[AgentStep] = []
        for _ in range(self._max_steps):
            answer = self._provider.complete(messages, list(self._specs.values()))
            results = tuple(map(self._call, answer.calls))
            steps.append(AgentStep(answer.text, answer.calls, results))
            if not answer.calls:
                return AgentResult(answer.text, steps)
            messages += [Message("assistant", answer.text, answer.calls), Message("tool", results=results)]
        return AgentResult(steps[-1].text, steps, completed=False)

    def _call(self, call: ToolCall) -> ToolResult:
        spec = self._specs.get(call.name)
        if spec is None:
            known = ", ".join(self._specs) or "none"
            return ToolResult(call.id, f'There is no tool "{call.name}". Known ones: {known}', True)
        if call.fault is not None:
            return ToolResult(call.id, f'Cannot read the arguments for "{call.name}": {call.fault}', True)
        try:
            return ToolResult(call.id, _content(_called(spec, call.arguments)))
        # SystemExit, too: a tool that leaves has not done its work, and the agent goes on.
        except (Exception, SystemExit) as error:
            return ToolResult(call.id, f"{type(error).__name__}: {error}", True)


def _called(spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    context: Context[Any] = current_context()
    try:
        injected = dict.fromkeys(parameters_of(spec).injected, context)
    except ValueError:
        injected = {}
    with use_context(context):
        value = call_by_name(spec, {**arguments, **injected})
        if inspect.isasyncgen(value) or inspect.isawaitable(value):
            return _awaited(ended(value))
        return list(value) if inspect.isgenerator(value) else value


def _awaited(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of an async tool, also where the agent itself runs in an event loop."""
    # Late: what every component of a tool would carry otherwise.
    import asyncio
    import threading

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    ended: list[Callable[[], Any]] = []

    def run() -> None:
        try:
            value = asyncio.run(work)
            ended.append(lambda: value)
        except BaseException as error:
            ended.append(lambda error=error: _raise(error))  # type: ignore[misc]

    thread = threading.Thread(target=run, name="brain-async-tool")
    thread.start()
    thread.join()
    return ended[0]()


def _raise(error: BaseException) -> Any:
    raise error


def _content(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json_text(value)
    except (TypeError, ValueError):
        return str(value)
