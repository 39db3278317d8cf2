"""Bounds of ``annotated_types``, which pydantic's ``Field`` has as well."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .json_values import is_scalar
from .shape import JsonSchema

_OF_NUMBERS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}
_SIZES = {"string": "Length", "array": "Items", "object": "Properties"}


def constraints_of(metadata: Any, schema: JsonSchema) -> JsonSchema:
    """The keywords that an object in ``Annotated`` means for a schema of one type; none for any other object."""
    types = schema.get("type")
    kinds = [one for one in ([types] if isinstance(types, str) else types or []) if one != "null"]
    kind = kinds[0] if len(kinds) == 1 else None
    found: JsonSchema = {}
    for one in _flattened(metadata):
        if kind in ("integer", "number"):
            bounds = {keyword: getattr(one, name, None) for name, keyword in _OF_NUMBERS.items()}
            found.update(
                {name: value for name, value in bounds.items() if type(value) in (int, float) and is_scalar(value)}
            )
        elif kind in _SIZES:
            sizes = {f"{least}{_SIZES[kind]}": getattr(one, f"{least}_length", None) for least in ("min", "max")}
            found.update({name: value for name, value in sizes.items() if type(value) is int})
            pattern = getattr(one, "pattern", None)
            if kind == "string" and isinstance(pattern, str):
                found["pattern"] = pattern
    return found


def _flattened(metadata: Any) -> Iterator[Any]:
    """``Field`` holds its bounds one by one, ``Interval`` and ``Len`` have them all."""
    yield metadata
    held = getattr(metadata, "metadata", None)
    yield from held if isinstance(held, (list, tuple)) else ()
