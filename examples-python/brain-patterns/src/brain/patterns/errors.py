"""How a tool fails on purpose."""

from __future__ import annotations


class ToolError(Exception):
    """Ends a call with an error: ``code`` is an identifier for programs, ``message`` is for people and models.

    The host's refusals are raised as this, too: ``emit_limit``, ``model_call_limit`` and so on.
    """

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code
        self.message = message
