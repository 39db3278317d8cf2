"""One call of a tool, from the texts of the wire to its end."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..patterns.context import Context, Host, deadline_of, options_of, use_context
from ..patterns.errors import ToolError
from ..patterns.tools import ToolSpec, parameters_of
from ..patterns.tools import options_of as options_shape_of
from ..schema.check import fault_of
from ..schema.shape import Shape
from ..schema.signature import call_by_name
from .event_loop import completed

#: What a log can hold of one record, in characters.
_MAX_TRACEBACK = 32 * 1024
_MAX_MESSAGE = 4096


@dataclass(frozen=True)
class Invocation:
    """A call as it comes over the wire."""

    input_json: str
    configuration_json: str
    deadline_at_ms: int


class ServedTool:
    """A tool, ready to be called: its hints are read once, when the component is made."""

    def __init__(self, spec: ToolSpec):
        self._spec = spec
        self._schema = spec.parameters
        self._options = options_shape_of(spec)
        parameters = parameters_of(spec)
        self._shapes: Mapping[str, Shape] = parameters.shapes
        self._injected = tuple(parameters.injected)
        self._required = parameters.schema.get("required", ())
        self._takes_any = parameters.takes_any
        self._root = {"$defs": parameters.schema.get("$defs", {})}

    def run(self, invocation: Invocation, host: Host) -> None:
        """Makes one call, which is finished when this returns.

        :raises ToolError: the error that ends the call. An exception is ``tool_error``, its traceback goes to the log.
        """
        _reseed()
        try:
            self._run(invocation, host)
        except ToolError:
            raise
        # SystemExit, too: a tool that leaves has not done its work.
        except BaseException as error:
            host.telemetry(json.dumps({"traceback": traceback.format_exc()[-_MAX_TRACEBACK:]}))
            said = "".join(traceback.format_exception_only(type(error), error)).strip()
            raise ToolError("tool_error", said[:_MAX_MESSAGE]) from None

    def _run(self, invocation: Invocation, host: Host) -> None:
        arguments = self._arguments(invocation.input_json)
        options = self._decoded_options(options_of(invocation.configuration_json))
        context: Context[Any] = Context(options, deadline_of(invocation.deadline_at_ms), host)
        with use_context(context):
            values = {**arguments, **dict.fromkeys(self._injected, context)}
            context.end(completed(call_by_name(self._spec.fn, values)))

    def _arguments(self, text: str) -> dict[str, Any]:
        given = json.loads(text)
        if not isinstance(given, dict):
            raise self._invalid("the input must be an object")
        fault = fault_of(self._schema, given)
        if fault is not None:
            raise self._invalid(fault)
        self._insist_on_known(given)
        return {name: self._decoded(name, value) for name, value in given.items()}

    def _insist_on_known(self, given: Mapping[str, Any]) -> None:
        """As Python does, but before the function is called, and as a fault of the caller."""
        unknown = [] if self._takes_any else [name for name in given if name not in self._shapes]
        if unknown:
            raise self._invalid(f'"{unknown[0]}" is none of its parameters')
        missing = [name for name in self._required if name not in given]
        if missing:
            raise self._invalid(f'"{missing[0]}" is missing')

    def _decoded(self, name: str, value: Any) -> Any:
        shape = self._shapes.get(name)
        # Parameters that were written by hand may say something else than the hints.
        if shape is None or shape.is_plain or fault_of(shape.schema, value, root=self._root) is not None:
            return value
        try:
            return shape.decode(value)
        except (TypeError, ValueError) as error:
            raise self._invalid(f'"{name}" cannot be used: {error}') from None

    def _decoded_options(self, options: Mapping[str, Any]) -> Any:
        if self._options is None:
            return options
        shape, schema = self._options
        fault = fault_of(schema, options)
        if fault is not None:
            raise ToolError("invalid_options", f'Cannot call "{self._spec.name}" with its options: {fault}')
        return shape.decode(options)

    def _invalid(self, reason: str) -> ToolError:
        return ToolError("invalid_input", f'Cannot call "{self._spec.name}": {reason}'[:_MAX_MESSAGE])


def _reseed() -> None:
    """The generator behind ``random``'s functions is in the snapshot: without this every call got the same numbers."""
    if "random" in sys.modules:
        sys.modules["random"].seed()
