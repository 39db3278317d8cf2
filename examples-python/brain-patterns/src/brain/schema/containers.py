"""Shapes of lists, tuples, sets and dictionaries."""

from __future__ import annotations

import collections
import collections.abc as abc
from collections.abc import Callable
from typing import Any

from .check import fault_of
from .scope import annotations_of
from .shape import JsonSchema, Shape

Read = Callable[[Any], Shape]

#: The arguments of ``tuple[()]``, which holds nothing, as against ``tuple``, which may hold anything.
NOTHING = ((),)

_LISTS = (abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable, abc.Container)
_SETS = (abc.Set, abc.MutableSet)
_MAPPINGS = (abc.Mapping, abc.MutableMapping)


def shape_of_container(origin: Any, arguments: tuple[Any, ...], read: Read) -> Shape | None:
    """The shape of a container; None for anything else."""
    if not isinstance(origin, type):
        return None
    if issubclass(origin, tuple):
        return _named_tuple(origin, read) if hasattr(origin, "_fields") else _tuple(origin, arguments, read)
    if origin in _MAPPINGS or issubclass(origin, dict):
        return _mapping(origin, arguments, read)
    if origin in _SETS or issubclass(origin, (set, frozenset)):
        return _items(set if origin in _SETS else origin, arguments, read, {"uniqueItems": True})
    if origin in _LISTS or issubclass(origin, (list, collections.deque)):
        return _items(list if origin in _LISTS else origin, arguments, read, {})
    return None


def _items(origin: type, arguments: tuple[Any, ...], read: Read, more: JsonSchema) -> Shape:
    schema: JsonSchema = {"type": "array"}
    item = read(arguments[0]) if arguments else Shape({})
    if arguments:
        schema["items"] = item.schema
    schema.update(more)
    if origin is list and item.is_plain:
        return Shape(schema)
    return Shape(schema, lambda value: origin(item.decode(one) for one in value))


def _tuple(origin: type, arguments: tuple[Any, ...], read: Read) -> Shape:
    if not arguments:
        return Shape({"type": "array"}, origin)
    if arguments == NOTHING:
        arguments = ()
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = read(arguments[0])
        schema = {"type": "array", "items": item.schema}
        return Shape(schema, lambda value: origin(item.decode(one) for one in value))
    items = [read(one) for one in arguments]
    return Shape(_positions(items, len(items)), lambda value: origin(_decoded(items, value)))


def _named_tuple(origin: Any, read: Read) -> Shape:
    hints = annotations_of(origin)
    items = [read(hints.get(name, Any)) for name in origin._fields]
    least = len(items) - len(origin._field_defaults)
    return Shape(_positions(items, least), lambda value: origin(*_decoded(items, value)))


def _decoded(items: list[Shape], value: list[Any]) -> list[Any]:
    return [item.decode(one) for item, one in zip(items, value)]


def _positions(items: list[Shape], least: int) -> JsonSchema:
    """Providers want ``items`` in every array, so it says what all positions have in common."""
    schemas = [item.schema for item in items]
    different = [one for index, one in enumerate(schemas) if one not in schemas[:index]]
    schema: JsonSchema = {"type": "array"}
    if len(different) > 1:
        schema["prefixItems"] = schemas
    schema["items"] = different[0] if len(different) == 1 else {"anyOf": different} if different else {}
    return {**schema, "minItems": least, "maxItems": len(items)}


def _mapping(origin: Any, arguments: tuple[Any, ...], read: Read) -> Shape:
    schema: JsonSchema = {"type": "object"}
    # `Counter[str]` counts: its second type is not written.
    hints = (*arguments, int) if len(arguments) == 1 else arguments
    key, value = (read(hints[0]), read(hints[1])) if len(hints) == 2 else (Shape({}), Shape({}))
    if value.schema:
        schema["additionalProperties"] = value.schema
    numbered = key.schema.get("type") in ("integer", "number")
    if not numbered and key.schema in ({}, {"type": "string"}) and key.is_plain and value.is_plain:
        return Shape(schema)
    to_number: Callable[[str], Any] = int if key.schema.get("type") == "integer" else float

    def decode(members: dict[str, Any]) -> dict[Any, Any]:
        for name in members if not numbered and key.schema else ():
            fault = fault_of(key.schema, name)
            if fault is not None:
                raise ValueError(f"{name!r} is no name of a member: {fault}")
        named = {to_number(name) if numbered else name: one for name, one in members.items()}
        return {key.decode(name): value.decode(one) for name, one in named.items()}

    return Shape(schema, decode)
