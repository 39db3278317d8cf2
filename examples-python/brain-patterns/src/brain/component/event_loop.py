"""Runs async functions to their end where there is nothing to wait for but the clock."""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Coroutine
from typing import Any

from ..schema.signature import ended


def completed(value: Any) -> Any:
    """What an awaitable comes to, and all that a generator yields; anything else is what it is."""
    if inspect.isgenerator(value):
        return list(value)
    if not inspect.isasyncgen(value) and not inspect.isawaitable(value):
        return value
    work = value if inspect.iscoroutine(value) else ended(value)
    # Who sleeps, or does several things at once, has imported asyncio; a component carries it only then.
    return _stepped(work) if "asyncio" not in sys.modules else _in_loop(work)


def _stepped(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise RuntimeError(
        "Cannot go on with an async tool: it waits for what only an event loop could bring. Import asyncio"
    )


def _in_loop(work: Coroutine[Any, Any, Any]) -> Any:
    import asyncio

    class Clock:
        """Stands for the selector, which WASI has none of: no file or socket ever becomes ready, but time passes."""

        def select(self, timeout: float | None) -> list[Any]:
            if timeout is None:
                raise RuntimeError("Cannot go on with an async tool: it waits for what can never happen in a component")
            if timeout > 0:
                time.sleep(timeout)
            return []

    class Loop(asyncio.BaseEventLoop):
        _selector = Clock()

        def _process_events(self, events: list[Any]) -> None:
            pass

        def _write_to_self(self) -> None:
            pass  # there is no other thread that could wake it

    loop = Loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
