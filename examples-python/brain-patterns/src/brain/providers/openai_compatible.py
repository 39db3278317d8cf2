"""Models behind the chat completions API of OpenAI, which many servers speak."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..schema.json_values import json_value
from ..schema.portable import portable_schema
from .http import post_json, unreadable
from .provider import Answer, Message, ToolCall, tool_call

if TYPE_CHECKING:
    from ..patterns.tools import ToolSpec


class OpenAICompatibleProvider:
    """Asks ``POST {base_url}/chat/completions``.

    :param api_key: sent as bearer token; None where the server wants none
    :param timeout: seconds that the server may be silent
    :param more: members of the request beside messages and tools, such as ``temperature``
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: str | None = None,
        base_url: str = "https://api.openai.com/v1",
        timeout: float = 600,
        more: Mapping[str, Any] | None = None,
    ):
        self._model = model
        self._headers = {} if api_key is None else {"authorization": f"Bearer {api_key}"}
        self._url = f"{base_url.rstrip('/')}/chat/completions"
        self._timeout = timeout
        self._more = dict(more or {})

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        request: dict[str, Any] = {**self._more, "model": self._model}
        request["messages"] = [one for message in messages for one in _written(message)]
        if tools:
            request["tools"] = [_offered(one) for one in tools]
        answer = post_json(self._url, self._headers, request, timeout=self._timeout)
        try:
            message = answer["choices"][0]["message"]
            calls = tuple(map(_call, message.get("tool_calls") or ()))
            return Answer(_text(message.get("content")) or message.get("refusal") or "", calls)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise unreadable(self._url, answer, error) from None


def _offered(tool: ToolSpec) -> dict[str, Any]:
    return {"type": "function", "function": {**tool.to_dict(), "parameters": portable_schema(tool.parameters)}}


def _text(content: Any) -> str:
    """Some servers answer with parts, as requests may have them."""
    parts = [{"type": "text", "text": content or ""}] if content is None or isinstance(content, str) else content
    return "".join(one["text"] for one in parts if one["type"] == "text")


def _written(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"role": "tool", "tool_call_id": one.call_id, "content": one.content} for one in message.results]
    written: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        written["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": json.dumps(one.arguments)}}
            for one in message.calls
        ]
    return [written]


def _call(call: Any) -> ToolCall:
    function = call["function"]
    name, given = function["name"], function.get("arguments")
    # Some servers give no id, which must be told apart for what goes back, and some have read the arguments before.
    identifier = call.get("id") or f"call_{uuid.uuid4().hex}"
    if not isinstance(given, str):
        return tool_call(identifier, name, given)
    try:
        # Tools without parameters get an empty text from some servers.
        return tool_call(identifier, name, json_value(given) if given.strip() else {})
    except ValueError as error:
        return tool_call(identifier, name, {}, f"they are no JSON: {error}")
