"""Models behind the messages API of Anthropic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..schema.portable import portable_schema
from .http import post_json, unreadable
from .provider import Answer, Message, ToolCall, tool_call

if TYPE_CHECKING:
    from ..patterns.tools import ToolSpec

_VERSION = "2023-06-01"


class AnthropicProvider:
    """Asks ``POST {base_url}/v1/messages``.

    :param max_tokens: of one answer
    :param timeout: seconds that the server may be silent
    :param more: members of the request beside messages and tools, such as ``temperature``
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str,
        base_url: str = "https://api.anthropic.com",
        max_tokens: int = 4096,
        timeout: float = 600,
        more: Mapping[str, Any] | None = None,
    ):
        self._fixed = {**(more or {}), "model": model, "max_tokens": max_tokens}
        self._headers = {"x-api-key": api_key, "anthropic-version": _VERSION}
        self._url = f"{base_url.rstrip('/')}/v1/messages"
        self._timeout = timeout

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        request: dict[str, Any] = {**self._fixed, "messages": [_written(one) for one in messages]}
        if tools:
            request["tools"] = [
                {**one.to_anthropic_schema(), "input_schema": portable_schema(one.parameters)} for one in tools
            ]
        answer = post_json(self._url, self._headers, request, timeout=self._timeout)
        try:
            blocks = answer["content"]
            text = "".join(one["text"] for one in blocks if one["type"] == "text")
            # Only the last call can have lost something of its input.
            is_cut_off = answer.get("stop_reason") == "max_tokens"
            last = blocks[-1] if is_cut_off and blocks else None
            return Answer(text, tuple(_call(one, one is last) for one in blocks if one["type"] == "tool_use"))
        except (KeyError, TypeError, AttributeError) as error:
            raise unreadable(self._url, answer, error) from None


def _call(block: Any, is_cut_off: bool) -> ToolCall:
    fault = "the answer was cut off at max_tokens" if is_cut_off else None
    return tool_call(block["id"], block["name"], block["input"], fault)


def _written(message: Message) -> dict[str, Any]:
    if message.role == "tool":
        results = [
            {"type": "tool_result", "tool_use_id": one.call_id, "content": one.content, "is_error": one.is_error}
            for one in message.results
        ]
        return {"role": "user", "content": results}
    # The API refuses texts that are empty.
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text}] if message.text else []
    blocks += [{"type": "tool_use", "id": one.id, "name": one.name, "input": one.arguments} for one in message.calls]
    return {"role": message.role, "content": blocks}
