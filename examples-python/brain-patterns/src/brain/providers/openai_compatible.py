"""Models behind the chat completions API of OpenAI, which many servers speak."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .http import post_json
from .provider import Answer, Message, ProviderError, ToolCall

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
            request["tools"] = [one.to_openai_schema() for one in tools]
        answer = post_json(self._url, self._headers, request, timeout=self._timeout)
        try:
            message = answer["choices"][0]["message"]
            calls = tuple(map(_call, message.get("tool_calls") or ()))
            return Answer(message.get("content") or "", calls)
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ProviderError(f'Cannot read the answer of "{self._url}": {type(error).__name__} {error}') from None


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
    identifier, function = call["id"], call["function"]
    text = function.get("arguments") or ""
    try:
        # Tools without parameters get an empty text from some servers.
        arguments = json.loads(text) if text.strip() else {}
        fault = None if isinstance(arguments, dict) else "they are no JSON object"
    except ValueError as error:
        arguments, fault = {}, f"they are no JSON: {error}"
    return ToolCall(identifier, function["name"], {} if fault else arguments, fault)
