"""The guest side of ``brain:tool@0.2.0`` for tools written in Python.

A tool is a function of one :class:`Call`; what it returns becomes the result. ``build.py`` turns the function ``run``
of a folder's ``tool.py`` into a component::

    from brain_guest import Call, Failure, emit

    def run(call: Call):
        emit("greeting_started", {"name": call.input["name"]})
        return {"greeting": f"Hello, {call.input['name']}"}
"""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Callable

from componentize_py_types import Err
from wit_world.imports import host, types

WORKSPACE = PurePosixPath("/workspace")


class Failure(Exception):
    """Ends a call with an error: ``code`` is an identifier for programs, ``message`` is for people."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Call:
    """One call of a tool, decoded."""

    input: dict[str, Any]
    #: The options with which the tool was placed, ``configuration-json`` on the wire.
    options: dict[str, Any]
    #: When the host stops the tool, in milliseconds since the Unix epoch; None = never.
    deadline_at_ms: int | None


@dataclass(frozen=True)
class WithContent:
    """A value with the text that stands for it in the model's conversation."""

    value: Any
    content: str


@dataclass(frozen=True)
class Reply:
    """What the model said: its text blocks, joined, and why it stopped (``end_turn`` for a complete answer)."""

    text: str
    stop_reason: str


def workspace_path(path: str) -> Path:
    """The path that the caller of a tool means: relative paths are relative to the workspace."""
    return Path(WORKSPACE / path)


def emit(kind: str, payload: Any) -> int:
    """Commits an event of the tool's own kind and answers its sequence in the session's journal."""
    return _asked(host.emit, kind, _json(payload))


def emit_result(value: Any) -> int:
    """Commits one result; the execution stays open for more."""
    return _asked(host.emit_result, _outcome(value))


def returned(value: Any) -> int:
    """Ends the synchronous phase with a result; whoever waits for the call goes on, and so may the tool."""
    return _asked(host.returned, _outcome(value))


def finish(value: Any) -> int:
    """Ends the execution with a result. Every service refuses after it."""
    return _asked(host.finish, _outcome(value))


def ask(system: str, text: str) -> Reply:
    """Asks the session's model one question. Nothing of the conversation is sent but ``system`` and ``text``."""
    messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
    answer = json.loads(_asked(host.model, _json({"system": system, "messages": messages})))
    blocks = answer["message"]["content"]
    return Reply("".join(block["text"] for block in blocks if block["type"] == "text"), answer["stop_reason"])


def telemetry(record: Any) -> None:
    """Leaves a diagnostic record in the call's log, which neither the journal nor the model sees."""
    host.telemetry(_json(record))


def serve(run: Callable[[Call], Any]) -> type:
    """The class that componentize-py exports for one tool."""

    class WitWorld:
        def run(self, invocation: types.Invocation) -> str:
            try:
                _reseed()
                # Finished before returning: returning alone would leave the execution open until its deadline. The
                # empty text then says that there is no second result.
                finish(run(_decoded(invocation)))
                return ""
            except Failure as failure:
                raise Err(types.ToolError(failure.code, failure.message)) from None
            except Exception as error:
                traceback.print_exc(file=sys.stderr)
                raise Err(types.ToolError("tool_error", f"{type(error).__name__}: {error}"[:4096])) from None

    return WitWorld


def _reseed() -> None:
    """The generator behind ``random``'s functions is in the snapshot: without this every call got the same numbers."""
    if "random" in sys.modules:
        sys.modules["random"].seed()


def _decoded(invocation: types.Invocation) -> Call:
    # A placement without options arrives as null, or as nothing.
    options = json.loads(invocation.configuration_json or "null")
    options = {} if options is None else options
    return Call(json.loads(invocation.input_json), options, invocation.deadline_at_ms or None)


def _outcome(value: Any) -> str:
    if isinstance(value, WithContent):
        return _json({"status": "ok", "value": value.value, "content": value.content})
    return _json({"status": "ok", "value": value})


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise Failure("invalid_output", f"Cannot write the value as JSON: {error}") from None


def _asked(service: Callable[..., Any], *arguments: str) -> Any:
    try:
        return service(*arguments)
    except Err as refusal:
        raise Failure(refusal.value.code, refusal.value.message) from None
