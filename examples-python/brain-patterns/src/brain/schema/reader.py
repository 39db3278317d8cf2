"""Reads type hints."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import re
import typing
from collections.abc import Callable, Iterable
from typing import Any, get_args, get_origin

from .check import fault_of
from .constraints import constraints_of
from .containers import NOTHING, shape_of_container
from .json_values import strict_json
from .records import (
    dataclass_shape,
    is_pydantic_model,
    is_typed_dict,
    pydantic_shape,
    typed_dict_shape,
)
from .scope import Scope, UnresolvedHint
from .shape import JsonSchema, Shape, of_type, whole_number
from .special import special_name
from .values import shape_of_enum, shape_of_literal

#: The published table. A hint that is nowhere here is a string.
_TABLE = {
    str: of_type("string"),
    bool: of_type("boolean"),
    int: Shape({"type": "integer"}, whole_number),
    float: of_type("number"),
    list: of_type("array"),
    dict: of_type("object"),
    type(None): of_type("null"),
}
_WRAPPERS = ("Final", "Required", "NotRequired", "ReadOnly", "ClassVar")
#: What a dictionary in ``Annotated`` may add to a schema.
_KEYWORDS = set(
    "title description examples deprecated format pattern minLength maxLength minimum maximum exclusiveMinimum "
    "exclusiveMaximum multipleOf minItems maxItems uniqueItems minProperties maxProperties".split()
)
_MAX_DEPTH = 40


class HintReader:
    """Reads hints of one function. Types that hold themselves go to ``definitions``, which the root's ``$defs`` must be.

    :ivar unresolved: whether a hint could not be evaluated, so that a later try may know more
    """

    def __init__(self, *, output: bool = False):
        self.unresolved = False
        self.definitions: JsonSchema = {}
        self._output = output
        self._unknown = Shape({}) if output else of_type("string")
        self._depth = 0
        self._names: dict[Any, str] = {}
        self._open: list[Any] = []
        self._shapes: dict[Any, Shape] = {}

    def read(self, hint: Any, scope: Scope) -> Shape:
        """The shape of a hint, that of a string where it cannot be resolved or is not known."""
        try:
            return self._read(hint, scope)
        except UnresolvedHint:
            self.unresolved = True
            return self._unknown

    def _read(self, hint: Any, scope: Scope) -> Shape:
        if self._depth >= _MAX_DEPTH:
            raise UnresolvedHint("Cannot read a type hint: it is too deep")
        self._depth += 1
        try:
            return self._read_resolved(scope.resolved(hint), scope)
        finally:
            self._depth -= 1

    def _read_resolved(self, hint: Any, scope: Scope) -> Shape:
        if hint is Any or hint is object:
            return Shape({})
        if hint is None:
            return _TABLE[type(None)]
        if isinstance(hint, type) and hint in _TABLE:
            return _TABLE[hint]
        name = special_name(hint)
        special = None if name is None else self._special(name, hint, scope)
        return special or self._class(hint, scope) or self._unknown

    def _special(self, name: str, hint: Any, scope: Scope) -> Shape | None:
        arguments = get_args(hint)
        if name == "Annotated":
            return _annotated(self._read(arguments[0], scope), arguments[1:])
        if name == "Literal":
            return shape_of_literal(arguments)
        if name == "Union":
            return self._union([self._read(one, scope) for one in arguments])
        if name in _WRAPPERS and arguments:
            return self._read(arguments[0], scope)
        if name == "InitVar":
            return self._read(hint.type, scope)
        if name == "NewType":
            return self._read(hint.__supertype__, scope)
        if name == "TypeVar":
            return self._variable(hint, scope)
        return self._alias(hint, arguments, scope) if name == "TypeAliasType" else None

    def _union(self, members: list[Shape]) -> Shape:
        schemas = [one.schema for one in members]
        different = [one for index, one in enumerate(schemas) if one not in schemas[:index]]
        if {} in different:
            return Shape({}, lambda value: self._decode_first(members, value))
        if len(different) == 1:
            schema = different[0]
        elif all(one.keys() == {"type"} and one["type"] not in ("array", "object") for one in different):
            types = [name for one in different for name in _listed(one["type"])]
            schema = {"type": list(dict.fromkeys(types))}
        else:
            schema = {"anyOf": different}
        if all(one.is_plain for one in members):
            return Shape(schema)
        return Shape(schema, lambda value: self._decode_first(members, value))

    def _decode_first(self, members: Iterable[Shape], value: Any) -> Any:
        root = {"$defs": self.definitions}
        fitting = (one for one in members if fault_of(one.schema, value, root=root) is None)
        return next((one.decode(value) for one in fitting), value)

    def _variable(self, variable: Any, scope: Scope) -> Shape:
        if variable in scope.variables:
            return self._read(scope.variables[variable], Scope(scope.spaces))
        default = getattr(variable, "__default__", None)
        if getattr(variable, "has_default", bool)():
            return self._read(default, scope)
        if variable.__bound__ is not None:
            return self._read(variable.__bound__, scope)
        if variable.__constraints__:
            return self._union([self._read(one, scope) for one in variable.__constraints__])
        return Shape({})

    def _alias(self, hint: Any, arguments: tuple[Any, ...], scope: Scope) -> Shape:
        alias = get_origin(hint) or hint
        arguments = tuple(map(scope.substitute, arguments))
        try:
            value = alias.__value__
        except Exception as error:
            raise UnresolvedHint(f"Cannot resolve the type alias {alias.__name__}: {error}") from None
        variables = dict(zip(alias.__type_params__, arguments))
        within = Scope(scope.spaces, {**scope.variables, **variables})
        return self._named((alias, arguments), alias.__name__, lambda: self._read(value, within))

    def _class(self, hint: Any, scope: Scope) -> Shape | None:
        owner = get_origin(hint) or hint
        if not isinstance(owner, type):
            return None
        arguments = tuple(map(scope.substitute, get_args(hint)))
        if owner is tuple and not arguments and hint is not tuple and hint is not typing.Tuple:
            arguments = NOTHING  # as Python 3.10 tells `Tuple[()]`
        if issubclass(owner, enum.Enum):
            return shape_of_enum(owner)
        if is_pydantic_model(hint):
            return pydantic_shape(hint, self._define, self._output)
        if is_typed_dict(owner):
            return self._record(owner, arguments, lambda: typed_dict_shape(owner, arguments, scope, self.read))
        if dataclasses.is_dataclass(owner):
            more = (self.read, self.with_default, self._output)
            return self._record(owner, arguments, lambda: dataclass_shape(owner, arguments, scope, *more))
        within = scope.of_class(owner) if hasattr(owner, "_fields") else scope
        container = shape_of_container(owner, arguments, lambda one: self._read(one, within))
        return container or _subclass(owner)

    def _record(self, owner: type, arguments: tuple[Any, ...], build: Callable[[], Shape]) -> Shape:
        return self._named((owner, arguments), owner.__name__, build)

    def _named(self, key: Any, name: str, build: Callable[[], Shape]) -> Shape:
        """A type with a name, which may hold itself: then all its places refer to one definition."""
        key = (id(key[0]), repr(key[1]))
        if key in self._open or key in self._shapes:
            reference = self._names.setdefault(key, self._free_name(name))
            return Shape({"$ref": f"#/$defs/{reference}"}, lambda value: self._shapes[key].decode(value))
        self._open.append(key)
        try:
            shape = build()
        finally:
            self._open.remove(key)
        if key not in self._names:
            return shape
        self._shapes[key] = shape
        self.definitions[self._names[key]] = shape.schema
        return Shape({"$ref": f"#/$defs/{self._names[key]}"}, shape.decode)

    def _free_name(self, name: str) -> str:
        plain = re.sub(r"\W", "_", name, flags=re.ASCII)
        taken = {*self._names.values(), *self.definitions}
        return next(one for one in _numbered(plain) if one not in taken)

    def _define(self, name: str, schema: JsonSchema) -> None:
        self.definitions.setdefault(name, schema)

    def with_default(self, shape: Shape, default: Any) -> JsonSchema:
        """The schema with a default, where that is strict JSON and what the schema accepts."""
        if isinstance(default, type):
            return shape.schema
        try:
            value = strict_json(default)
        except Exception:
            return shape.schema
        fault = fault_of(shape.schema, value, root={"$defs": self.definitions}, exact=True)
        return shape.schema if fault else {**shape.schema, "default": value}


def _numbered(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}{number}"
        number += 1


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else types


def _keywords(given: dict[Any, Any]) -> JsonSchema:
    """Those of JSON Schema, whose values have a form in JSON."""
    found: JsonSchema = {}
    for name, value in given.items():
        if name not in _KEYWORDS or (name in ("title", "description") and not isinstance(value, str)):
            continue
        with contextlib.suppress(Exception):
            found[name] = strict_json(value)
    return found


def _annotated(base: Shape, metadata: Iterable[Any]) -> Shape:
    """The last text counts: it is the outermost of nested ones."""
    schema = dict(base.schema)
    for one in metadata:
        text = one if isinstance(one, str) else getattr(one, "documentation", None) or getattr(one, "description", None)
        if isinstance(one, dict):
            schema.update(_keywords(one))
        elif isinstance(text, str) and text:
            schema["description"] = text
        if not isinstance(one, (str, dict, type)):
            schema.update(constraints_of(one, base.schema))
    return Shape(schema, base.decode)


def _subclass(owner: type) -> Shape | None:
    """A class made of one in the table is written as that one."""
    for base in (bool, int, float, str):
        if issubclass(owner, base):
            return Shape(_TABLE[base].schema, owner)
    return None
