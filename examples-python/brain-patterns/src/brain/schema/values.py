"""Shapes of hints that list their values: ``Literal`` and enumerations."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from .json_values import by_value, is_scalar, member_json, same_json
from .shape import JsonSchema, Shape

_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def shape_of_values(pairs: Sequence[tuple[Any, Any]]) -> Shape | None:
    """The shape of values in JSON, each with what stands for it in Python; None where one is no JSON scalar."""
    values = [value for value, _ in pairs]
    if not values or not all(map(is_scalar, values)):
        return None
    types = list(dict.fromkeys(_TYPES[type(value)] for value in values))
    schema: JsonSchema = {"type": types[0] if len(types) == 1 else types}
    if types != ["null"]:
        schema["enum"] = values
    if all(value is meant for value, meant in pairs):
        return Shape(schema)
    return Shape(schema, lambda given: next((meant for value, meant in pairs if same_json(value, given)), given))


def shape_of_literal(arguments: Sequence[Any]) -> Shape | None:
    return shape_of_values([(member_json(one) if isinstance(one, enum.Enum) else one, one) for one in arguments])


def shape_of_enum(kind: type[enum.Enum]) -> Shape | None:
    if issubclass(kind, enum.Flag):
        return Shape({"type": "integer"}, kind)
    if not by_value(kind):
        return shape_of_values([(one.name, one) for one in kind])
    return shape_of_values([(one.value, one) for one in kind])
