"""A provider without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .provider import Answer, Message

if TYPE_CHECKING:
    from ..patterns.tools import ToolSpec


class LocalEchoProvider:
    """Answers the task with its own text and calls no tool: for tests, and to try an agent offline."""

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        return Answer(messages[0].text)
