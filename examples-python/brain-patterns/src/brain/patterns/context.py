"""What a call has beside its arguments."""

from __future__ import annotations

import contextlib
import contextvars
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Generic, Protocol, TypeVar, get_args, get_origin

from ..schema.json_values import json_text
from ..schema.special import special_name
from .errors import ToolError

Options = TypeVar("Options")

_WORKSPACE = PurePosixPath("/workspace")
#: What a context keeps that nobody reads, as long as a tool runs outside of a component.
_MOST_RECORDS = 10_000


Value = TypeVar("Value")


@dataclass(frozen=True)
class WithContent(Generic[Value]):
    """A result, with the text that stands for it in the model's conversation."""

    value: Value
    content: str


@dataclass(frozen=True)
class Reply:
    """What the model said: its text blocks, joined, and why it stopped (``end_turn`` for a complete answer)."""

    text: str
    stop_reason: str


@dataclass(frozen=True)
class Record:
    """What a tool told its host: the service, and its arguments, decoded."""

    service: str
    arguments: tuple[Any, ...]


class Host(Protocol):
    """The services of ``brain:tool/host``, as texts of JSON values. They raise :class:`ToolError`."""

    def emit(self, kind: str, payload: str) -> int: ...
    def emit_result(self, outcome: str) -> int: ...
    def returned(self, outcome: str | None) -> int: ...
    def finish(self, outcome: str | None) -> int: ...
    def model(self, request: str) -> str: ...
    def environments(self, request: str) -> str: ...
    def telemetry(self, record: str) -> None: ...


class Context(Generic[Options]):
    """The call that a tool is in. A parameter with this hint gets it, and no caller sees that parameter.

    ``Context[MyOptions]``, with a dataclass or a TypedDict, says what the tool's options are: they are checked, and
    ``options`` is of that type.

    Outside of a component, ``Context()`` stands for a host that takes everything and has no model: what the tool told
    it is in ``records``.

    :ivar options: what the session configured the tool with
    :ivar deadline: when the host stops the tool, in seconds since 1970, as ``time.time()``; None = never
    """

    options: Options
    deadline: float | None
    records: list[Record]

    def __init__(self, options: Any = None, deadline: float | None = None, host: Host | None = None):
        self.options = {} if options is None else options
        self.deadline = deadline
        self.records = []
        self.finished = False
        self.has_results = False
        self._host = _RecordingHost(self.records) if host is None else host

    def emit(self, kind: str, payload: Any = None) -> int:
        """Commits an event of the tool's own kind and answers its sequence in the session's journal."""
        return self._host.emit(kind, _text(payload))

    def emit_result(self, value: Any) -> int:
        """Commits one result; the call stays open for more."""
        self.has_results = True
        return self._host.emit_result(_outcome(value))

    def returned(self, value: Any) -> int:
        """Commits a result and lets whoever waits for the call go on; the tool may go on, too."""
        self.has_results = True
        return self._host.returned(_outcome(value))

    def finish(self, value: Any) -> int:
        """Ends the call with a result, before the function returns. No service takes anything after it."""
        sequence = self._host.finish(_outcome(value))
        self.finished = True
        return sequence

    def model(self, text: str, *, system: str = "") -> Reply:
        """Asks the session's model one question. Nothing of the conversation is sent but ``system`` and ``text``.

        :raises ToolError: ``model_call_limit`` and what providers refuse
        """
        messages = [{"role": "user", "content": [{"type": "text", "text": text}]}]
        answer = json.loads(self._host.model(_text({"system": system, "messages": messages})))
        blocks = answer["message"]["content"]
        return Reply("".join(one["text"] for one in blocks if one["type"] == "text"), answer["stop_reason"])

    def environments(self, request: Any) -> Any:
        """Lists, reads or controls the environments that the tool was granted."""
        return json.loads(self._host.environments(_text(request)))

    def telemetry(self, record: Any) -> None:
        """Leaves a diagnostic record in the call's log, which neither the journal nor the model sees."""
        self._host.telemetry(_text(record))

    def end(self, value: Any) -> None:
        """Ends the call with what the function returned, unless it is over. A tool that gave its results by itself and
        returns None gives no other."""
        if self.finished:
            return
        if value is None and self.has_results:
            self._host.finish(None)
            self.finished = True
        else:
            self.finish(value)


class _RecordingHost:
    def __init__(self, records: list[Record]):
        self._records = records

    def _keep(self, service: str, *texts: str | None) -> int:
        arguments = (None if text is None else json.loads(text) for text in texts)
        self._records.append(Record(service, tuple(arguments)))
        del self._records[:-_MOST_RECORDS]
        return len(self._records)

    def emit(self, kind: str, payload: str) -> int:
        return self._keep("emit", json.dumps(kind), payload)

    def emit_result(self, outcome: str) -> int:
        return self._keep("emit_result", outcome)

    def returned(self, outcome: str | None) -> int:
        return self._keep("returned", outcome)

    def finish(self, outcome: str | None) -> int:
        return self._keep("finish", outcome)

    def model(self, request: str) -> str:
        self._keep("model", request)
        raise ToolError("model_call_limit", "Cannot ask the model: outside of a session there is none")

    def environments(self, request: str) -> str:
        self._keep("environments", request)
        raise ToolError("unsupported_host_call", "Cannot ask for environments: outside of a session there are none")

    def telemetry(self, record: str) -> None:
        self._keep("telemetry", record)


_current: contextvars.ContextVar[Context[Any] | None] = contextvars.ContextVar("brain_context", default=None)


def current_context() -> Context[Any]:
    """The context of the call that is being made; outside of one, a new one, whose records nobody reads."""
    return _current.get() or Context()


@contextlib.contextmanager
def use_context(context: Context[Any]) -> Iterator[Context[Any]]:
    """Makes a context the current one: for tests of tools that call :func:`current_context`."""
    token = _current.set(context)
    try:
        yield context
    finally:
        _current.reset(token)


def workspace_path(path: str) -> Path:
    """The path that the caller of a tool means: relative paths are relative to the workspace."""
    return Path(_WORKSPACE / path)


def is_context(hint: Any) -> bool:
    """Whether a hint means the context of the call, also where it may be None."""
    if special_name(hint) in ("Annotated", "Union"):
        return any(map(is_context, get_args(hint)))
    return (get_origin(hint) or hint) is Context


def options_hint(hint: Any) -> Any:
    """What a hint of the context says of the options; None where it says nothing."""
    if special_name(hint) in ("Annotated", "Union"):
        return next((options_hint(one) for one in get_args(hint) if is_context(one)), None)
    return next(iter(get_args(hint)), None)


def value_hint(hint: Any) -> Any:
    """What a hint of a result says of its value."""
    if (get_origin(hint) or hint) is not WithContent:
        return hint
    return next(iter(get_args(hint)), Any)


def _outcome(value: Any) -> str:
    if isinstance(value, WithContent):
        return _text({"status": "ok", "value": value.value, "content": value.content})
    return _text({"status": "ok", "value": value})


def _text(value: Any) -> str:
    try:
        return json_text(value)
    except (TypeError, ValueError) as error:
        raise ToolError("invalid_output", f"Cannot write the value as JSON: {error}") from None


def deadline_of(at_ms: int) -> float | None:
    """A deadline of the wire, where 0 is none, in seconds."""
    return at_ms / 1000 if at_ms else None


def options_of(text: str) -> Mapping[str, Any]:
    """The options of the wire. A placement without any arrives as null, or as nothing."""
    options: Mapping[str, Any] | None = json.loads(text or "null")
    return {} if options is None else options
