"""A session of Brain, whose tools run in its sandbox."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .http import post_json, request_json
from .provider import Answer, Message, ProviderError

if TYPE_CHECKING:
    from ..patterns.tools import ToolSpec

_ENVIRONMENT = "box"


class BrainProvider:
    """Gives tasks to a session of Brain: its model answers, and its tools run in the sandbox of the server.

    An agent with this provider may only list tools that the session has. They are not called in this process: the
    session calls its own, compiled ones.

    :param url: of the server, such as ``http://127.0.0.1:8080``
    :param token: ``BRAIN_API_TOKEN``, or that of the tenant; None where the server wants none
    :param timeout: seconds that the server may be silent
    """

    def __init__(self, url: str, session_id: str, *, token: str | None = None, timeout: float = 600):
        self._server = _Server(url, token, timeout)
        self.session_id = session_id
        self._session = f"/v1/sessions/{quote(session_id, safe='')}"
        self._declared: list[dict[str, Any]] | None = None

    @classmethod
    def open(
        cls,
        url: str,
        components: Iterable[str | os.PathLike[str]],
        *,
        model: Mapping[str, Any],
        grants: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        token: str | None = None,
        timeout: float = 600,
    ) -> BrainProvider:
        """Uploads components and makes a session with them.

        :param components: files that ``brain build`` or ``python -m brain.build`` made
        :param model: ``{"provider", "name", "api_key"}``
        :param grants: such as ``{"filesystem": {"workspace": "write"}}``; default: none
        :param options: of each tool, by its name
        :raises ProviderError: when the server refuses one of them
        """
        server = _Server(url, token, timeout)
        tools = [_placed(server.upload(Path(path).read_bytes(), path), options or {}) for path in components]
        environment = {"name": _ENVIRONMENT, "driver": "brain", "lifecycle": "automatic"}
        request = {
            "model": dict(model),
            "tools": tools,
            "environments": [{**environment, "configuration": dict(grants or {})}],
        }
        created = server.post("/v1/sessions", request)
        return cls(url, created["session_id"], token=token, timeout=timeout)

    def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Answer:
        known = {one["name"] for one in self._tools()}
        missing = [one.name for one in tools if one.name not in known]
        if missing:
            raise ProviderError(
                f'Cannot use "{missing[0]}" in the session {self.session_id}: it has {", ".join(sorted(known)) or "none"}. '
                "Compile the tool, and make the session with it"
            )
        before = self._server.get(self._session)["last_sequence"]
        self._server.post(f"{self._session}/messages", {"input": {"message": messages[-1].text}})
        self._insist_on_answer(before)
        last = self._server.get(f"{self._session}/transcript")["messages"][-1]
        return Answer("".join(one["text"] for one in last["content"] if one["type"] == "text"))

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Calls one tool of the session, without a model.

        :returns: the value of its last result
        :raises ToolError: when the call ends with an error; its code is that of the outcome, such as ``timeout``
        """
        from ..patterns.errors import ToolError

        path = f"{self._session}/tools/{quote(name, safe='')}/calls?wait=finished"
        answer = self._server.post(path, {"input": dict(arguments)})
        outcome = answer["outcome"]
        if outcome["status"] != "ok":
            error = outcome.get("error", {})
            code = error.get("code", outcome["status"])
            raise ToolError(code, error.get("message", outcome.get("message", f'Cannot call "{name}": {code}')))
        return answer["results"][-1]["output"] if answer["results"] else outcome["value"]

    def tools(self) -> dict[str, ToolSpec]:
        """The tools of the session by name, for an agent with any provider: a call runs in the session."""
        from ..patterns.tools import ToolSpec

        def caller(name: str) -> Any:
            return lambda **arguments: self.call(name, arguments)

        return {
            one["name"]: ToolSpec(one["name"], caller(one["name"]), one["description"], one["input_schema"])
            for one in self._tools()
        }

    def _tools(self) -> list[dict[str, Any]]:
        if self._declared is None:
            first = self._server.get(f"{self._session}/events")["events"][0]
            self._declared = list(first["data"]["tools"])
        return self._declared

    def _insist_on_answer(self, after: int) -> None:
        while True:
            page = self._server.get(f"{self._session}/events?after={after}")
            for one in page["events"]:
                if one["event_type"] == "turn_failed":
                    raise ProviderError(f"Cannot answer in the session {self.session_id}: {one['data']['message']}")
            if not page["events"]:
                return
            after = page["next_cursor"]


class _Server:
    def __init__(self, url: str, token: str | None, timeout: float):
        self._url = url.rstrip("/")
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._timeout = timeout

    def get(self, path: str) -> Any:
        return request_json("GET", self._url + path, self._headers, timeout=self._timeout)

    def post(self, path: str, value: Any) -> Any:
        return post_json(self._url + path, self._keyed(), value, timeout=self._timeout)

    def upload(self, component: bytes, path: Any) -> dict[str, Any]:
        headers = {**self._keyed(), "content-type": "application/wasm"}
        answer = request_json("POST", f"{self._url}/v1/tools", headers, component, timeout=self._timeout)
        if not isinstance(answer, dict) or "metadata" not in answer:
            raise ProviderError(f'Cannot use "{path}": it does not say which tool it is. Build it with "brain build"')
        return answer

    def _keyed(self) -> dict[str, str]:
        return {**self._headers, "idempotency-key": str(uuid.uuid4())}


def _placed(admitted: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    name = admitted["metadata"]["name"]
    implementation = {"type": "brain_component", "entrypoint": "run", "id": admitted["id"]}
    if name in options:
        implementation["configuration"] = options[name]
    return {"name": name, "placements": {_ENVIRONMENT: {"implementation": implementation}}}
