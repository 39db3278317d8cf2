"""A small checker for the part of JSON Schema that tools written in Python use.

It is the second one: Brain has checked the input of a call before, with all keywords. Keywords that are not here pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .json_values import same_json

Schema = Mapping[str, Any]

_NAMES = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "an array", dict: "an object"}
_WANTED = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def fault_of(schema: Schema, value: Any, *, root: Schema | None = None, exact: bool = False) -> str | None:
    """The first fault of a value, as ``path must be …``; None when it is as the schema says.

    :param root: holds ``$defs``; default: the schema itself.
    :param exact: ``1.0`` is no integer then.
    """
    return next(_Checker(schema if root is None else root, exact).faults(schema, value, ""), None)


class _Checker:
    def __init__(self, root: Schema, exact: bool):
        self._definitions = root.get("$defs", {})
        self._exact = exact

    def faults(self, schema: Any, value: Any, at: str) -> Iterator[str]:
        if schema is True or not isinstance(schema, Mapping):
            if schema is False:
                yield f"{_place(at)} is not allowed"
            return
        if "$ref" in schema:
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            yield from self.faults(self._definitions.get(name, {}), value, at)
        yield from self._type(schema, value, at)
        yield from self._choice(schema, value, at)
        if isinstance(value, str):
            yield from _text(schema, value, at)
        elif isinstance(value, list):
            yield from self._array(schema, value, at)
        elif isinstance(value, dict):
            yield from self._object(schema, value, at)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield from _number(schema, value, at)

    def _type(self, schema: Schema, value: Any, at: str) -> Iterator[str]:
        if "type" not in schema:
            return
        types = [schema["type"]] if isinstance(schema["type"], str) else list(schema["type"])
        if not any(self._is(value, one) for one in types):
            wanted = " or ".join(_WANTED.get(one, str(one)) for one in types)
            yield f"{_place(at)} must be {wanted}, not {_NAMES.get(type(value), 'null')}"

    def _is(self, value: Any, name: str) -> bool:
        if name == "null":
            return value is None
        if isinstance(value, bool):
            return name == "boolean"
        if name == "integer":
            return isinstance(value, int) or (not self._exact and isinstance(value, float) and value.is_integer())
        kinds: dict[str, Any] = {"string": str, "number": (int, float), "array": list, "object": dict}
        return name in kinds and isinstance(value, kinds[name])

    def _choice(self, schema: Schema, value: Any, at: str) -> Iterator[str]:
        if "enum" in schema and not any(same_json(value, one) for one in schema["enum"]):
            yield f"{_place(at)} must be one of {', '.join(map(repr, schema['enum']))}"
        if "const" in schema and not same_json(value, schema["const"]):
            yield f"{_place(at)} must be {schema['const']!r}"
        for one in schema.get("allOf", ()):
            yield from self.faults(one, value, at)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                yield from self._any(schema[keyword], value, at)

    def _any(self, choices: list[Schema], value: Any, at: str) -> Iterator[str]:
        first = [next(self.faults(one, value, at), None) for one in choices]
        if all(first):
            yield f"{_place(at)} is none of what it may be: {'; '.join(one for one in first if one)}"

    def _array(self, schema: Schema, value: list[Any], at: str) -> Iterator[str]:
        yield from _bounds(schema, len(value), at, "items", ("minItems", "maxItems"))
        if schema.get("uniqueItems") and len({json.dumps(one, sort_keys=True) for one in value}) < len(value):
            yield f"{_place(at)} must hold nothing twice"
        prefix = schema.get("prefixItems", [])
        for index, one in enumerate(value):
            known = prefix[index] if index < len(prefix) else schema.get("items", True)
            yield from self.faults(known, one, f"{at}[{index}]")

    def _object(self, schema: Schema, value: dict[str, Any], at: str) -> Iterator[str]:
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{_place(_member(at, name))} is missing"
        properties = schema.get("properties", {})
        for name, one in value.items():
            known = properties[name] if name in properties else schema.get("additionalProperties", True)
            yield from self.faults(known, one, _member(at, name))


def _text(schema: Schema, value: str, at: str) -> Iterator[str]:
    yield from _bounds(schema, len(value), at, "characters", ("minLength", "maxLength"))
    if "pattern" in schema:
        try:
            matches = re.search(schema["pattern"], value)
        except re.error:
            return  # a pattern that only ECMAScript has; Brain has checked it
        if not matches:
            yield f"{_place(at)} must match {schema['pattern']}"


_LIMITS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, limit: value >= limit),
    "maximum": ("at most", lambda value, limit: value <= limit),
    "exclusiveMinimum": ("more than", lambda value, limit: value > limit),
    "exclusiveMaximum": ("less than", lambda value, limit: value < limit),
}


def _number(schema: Schema, value: float, at: str) -> Iterator[str]:
    for keyword, (words, holds) in _LIMITS.items():
        if keyword in schema and not holds(value, schema[keyword]):
            yield f"{_place(at)} must be {words} {schema[keyword]}"


def _bounds(schema: Schema, size: int, at: str, of: str, keywords: tuple[str, str]) -> Iterator[str]:
    least, most = (schema.get(keyword) for keyword in keywords)
    if least is not None and size < least:
        yield f"{_place(at)} must have at least {least} {of}"
    if most is not None and size > most:
        yield f"{_place(at)} must have at most {most} {of}"


def _member(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _place(at: str) -> str:
    return f'"{at}"' if at else "the value"
