"""The class that componentize-py exports for one tool. It can be imported in a component only."""

from __future__ import annotations

from typing import Any

from componentize_py_types import Err  # type: ignore[import-not-found]
from wit_world.imports import host, types  # type: ignore[import-not-found]

from ..patterns.errors import ToolError
from ..patterns.tools import ToolSpec
from .run_call import Invocation, ServedTool


class _ComponentHost:
    def emit(self, kind: str, payload: str) -> int:
        return int(_asked(host.emit, kind, payload))

    def emit_result(self, outcome: str) -> int:
        return int(_asked(host.emit_result, outcome))

    def returned(self, outcome: str | None) -> int:
        return int(_asked(host.returned, outcome))

    def finish(self, outcome: str | None) -> int:
        return int(_asked(host.finish, outcome))

    def model(self, request: str) -> str:
        return str(_asked(host.model, request))

    def environments(self, request: str) -> str:
        return str(_asked(host.environments, request))

    def telemetry(self, record: str) -> None:
        host.telemetry(record)


def _asked(service: Any, *arguments: str | None) -> Any:
    try:
        return service(*arguments)
    except Err as refusal:
        raise ToolError(refusal.value.code, refusal.value.message) from None


def serve(spec: ToolSpec) -> type:
    """The exports of a component that is this tool."""
    served = ServedTool(spec)

    class WitWorld:
        def run(self, given: Any) -> str:
            invocation = Invocation(given.input_json, given.configuration_json, given.deadline_at_ms)
            try:
                served.run(invocation, _ComponentHost())
            except ToolError as failure:
                raise Err(types.ToolError(_utf8(failure.code), _utf8(failure.message))) from None
            # The call is finished: the empty text says that there is no second result.
            return ""

    return WitWorld


def _utf8(text: str) -> str:
    # A lone surrogate cannot leave the component.
    return text.encode("utf-8", "replace").decode()
