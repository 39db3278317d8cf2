"""What an agent asks, and what answers it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from ..patterns.tools import ToolSpec


class ProviderError(Exception):
    """A provider could not be reached, refused, or answered what cannot be used.

    :ivar status: of HTTP, where it answered
    """

    def __init__(self, message: str, status: int | None = None):
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class ToolCall:
    """A call that the model wants.

    :ivar fault: why the arguments cannot be read; the model is told, and the tool is not called
    """

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    fault: str | None = None


def tool_call(identifier: Any, name: Any, arguments: Any, fault: str | None = None) -> ToolCall:
    """A call as a provider tells it; arguments that are no object are a fault of the model's.

    :raises TypeError: for a call that could not be answered
    """
    if not isinstance(identifier, str) or not isinstance(name, str):
        raise TypeError("a call of a tool has no name, or no id")
    given = {} if arguments is None else arguments
    fault = fault if isinstance(given, dict) else "they are no JSON object"
    return ToolCall(identifier, name, {} if fault else given, fault)


@dataclass(frozen=True)
class ToolResult:
    """What a call came to."""

    call_id: str
    content: str
    is_error: bool = False


@dataclass(frozen=True)
class Message:
    """One message of the conversation: a text, the calls that the model wants, or the results of all of them."""

    role: Literal["user", "assistant", "tool"]
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What the model said, and the tools that it wants called; without any, the text is the answer to the task."""

    text: str
    calls: tuple[ToolCall, ...] = ()


class Provider(Protocol):
    """Whatever answers an agent."""

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        """The next message of the model.

        :param messages: the conversation, which begins with the task
        :param tools: what the model may call
        :raises ProviderError: when there is none
        """
        ...
