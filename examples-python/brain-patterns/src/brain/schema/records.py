"""Shapes of classes with named members: dataclasses, TypedDicts, pydantic models."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, get_args

from .docstrings import described_parameters
from .scope import Scope, annotations_of
from .shape import JsonSchema, Shape
from .special import special_name

#: Reads a hint of a member in the scope of its class; a hint that cannot be resolved is a string there.
ReadIn = Callable[[Any, Scope], Shape]
#: Adds a fitting default to the schema of a member.
WithDefault = Callable[[Shape, Any], JsonSchema]

#: Factories that make the same value each time.
_CONSTANT_FACTORIES = (list, dict, set, frozenset, tuple, str, int, float, bool)


def is_typed_dict(hint: Any) -> bool:
    # `typing.is_typeddict` does not know those of typing_extensions.
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__required_keys__")


def is_pydantic_model(hint: Any) -> bool:
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def dataclass_shape(
    owner: Any, arguments: tuple[Any, ...], scope: Scope, read: ReadIn, with_default: WithDefault, output: bool
) -> Shape:
    described = described_parameters(owner.__doc__)
    properties: JsonSchema = {}
    required: list[str] = []
    members: dict[str, Shape] = {}
    for name, one in owner.__dataclass_fields__.items():
        kind = one._field_type.name
        if kind == "_FIELD_CLASSVAR" or (kind == "_FIELD_INITVAR" if output else not one.init):
            continue
        shape = members[name] = read(one.type, _scope_of_field(owner, name, arguments, scope))
        schema = _described(shape.schema, _description_of(one) or described.get(name))
        is_optional = one.default is not dataclasses.MISSING or one.default_factory is not dataclasses.MISSING
        if output or not is_optional:
            required.append(name)
        else:
            schema = with_default(Shape(schema), _constant_default(one))
        properties[name] = schema
    return Shape(
        object_schema(properties, required),
        lambda value: owner(
            **{name: members[name].decode(one) if name in members else one for name, one in value.items()}
        ),
    )


def _description_of(one: Any) -> str | None:
    text = one.metadata.get("description") or getattr(one, "doc", None)
    return text if isinstance(text, str) else None


def _constant_default(one: Any) -> Any:
    if one.default_factory in _CONSTANT_FACTORIES:
        return one.default_factory()
    return one.default


def _scope_of_field(owner: Any, name: str, arguments: tuple[Any, ...], scope: Scope) -> Scope:
    """A field is annotated in the module of the class that first had it, which may be another one."""
    declared = owner.__dataclass_fields__[name]
    holders = [base for base in owner.__mro__ if vars(base).get("__dataclass_fields__", {}).get(name) is declared]
    within = scope.of_class(owner, arguments)
    home = holders[-1] if holders else owner
    return within if home is owner else Scope((*Scope().of_class(home).spaces, *within.spaces), within.variables)


def typed_dict_shape(owner: Any, arguments: tuple[Any, ...], scope: Scope, read: ReadIn) -> Shape:
    within = scope.of_class(owner, arguments)
    described = described_parameters(owner.__doc__)
    members: dict[str, Shape] = {}
    properties: JsonSchema = {}
    required: list[str] = []
    for name, hint in annotations_of(owner).items():
        shape = members[name] = read(hint, within)
        properties[name] = _described(shape.schema, described.get(name))
        if _is_required(owner, name, hint, within):
            required.append(name)
    schema = object_schema(properties, required)
    if all(one.is_plain for one in members.values()):
        return Shape(schema)
    return Shape(
        schema,
        lambda value: {name: members[name].decode(one) if name in members else one for name, one in value.items()},
    )


def _is_required(owner: Any, name: str, hint: Any, scope: Scope) -> bool:
    """Where annotations are postponed, ``__required_keys__`` has not seen what they say."""
    try:
        hint = scope.resolved(hint)
        while special_name(hint) in ("Annotated", "ReadOnly"):
            hint = scope.resolved(get_args(hint)[0])
    except Exception:
        return name in owner.__required_keys__
    marked = special_name(hint)
    return marked == "Required" or (marked != "NotRequired" and name in owner.__required_keys__)


def pydantic_shape(owner: Any, define: Callable[[str, JsonSchema], None], output: bool) -> Shape:
    mode = "serialization" if output else "validation"
    schema = dict(owner.model_json_schema(ref_template="#/$defs/{model}", mode=mode))
    for name, one in schema.pop("$defs", {}).items():
        define(name, one)
    return Shape(schema, owner.model_validate)


def object_schema(properties: JsonSchema, required: list[str]) -> JsonSchema:
    """An object with some members; ``required`` is left out where there are none, as old validators want it."""
    schema: JsonSchema = {"type": "object", "properties": properties}
    return {**schema, "required": required} if required else schema


def _described(schema: JsonSchema, text: str | None) -> JsonSchema:
    return schema if text is None or "description" in schema else {**schema, "description": text}
