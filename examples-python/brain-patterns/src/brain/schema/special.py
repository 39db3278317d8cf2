"""Which of the special forms of ``typing`` a hint is."""

from __future__ import annotations

import types
import typing
from typing import Any, get_origin


def special_name(hint: Any) -> str | None:
    """``Union``, ``Annotated``, ``Required``…, also where it is the one of typing_extensions; None for an ordinary class."""
    origin = get_origin(hint)
    if origin is typing.Union or origin is types.UnionType:
        return "Union"
    if origin is None:
        return (
            type(hint).__name__ if type(hint).__name__ in ("NewType", "TypeVar", "TypeAliasType", "InitVar") else None
        )
    if isinstance(origin, type) and origin.__module__ not in ("typing", "typing_extensions"):
        return None
    if type(origin).__name__ == "TypeAliasType":
        return "TypeAliasType"
    name = getattr(origin, "_name", None) or getattr(origin, "__name__", None)
    return name if isinstance(name, str) else None
