"""Schemas in words that providers take."""

from __future__ import annotations

from typing import Any

from .shape import JsonSchema

_OF_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SCHEMA_LISTS = ("prefixItems", "anyOf", "oneOf", "allOf")
_SCHEMAS = ("items", "not", "contains", "propertyNames", "if", "then", "else")


def portable_schema(parameters: JsonSchema) -> JsonSchema:
    """The same parameters, spelled out where providers answer 400 to what JSON Schema lets one leave out.

    They insist on an object with ``properties`` at the root, on ``items`` in every array, and know no ``true``.
    """
    schema: JsonSchema = _spelled_out(parameters)
    return {**schema, "type": "object", "properties": schema.get("properties", {})}


def _spelled_out(schema: Any) -> Any:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        return schema
    spelled = {name: _member(name, value) for name, value in schema.items()}
    types = spelled.get("type")
    if (types == "array" or isinstance(types, list) and "array" in types) and not isinstance(
        spelled.get("items"), dict
    ):
        spelled["items"] = {}
    return spelled


def _member(name: str, value: Any) -> Any:
    if name in _OF_SCHEMAS and isinstance(value, dict):
        return {key: _spelled_out(one) for key, one in value.items()}
    if name in _SCHEMA_LISTS and isinstance(value, list):
        return [_spelled_out(one) for one in value]
    # `false` there is understood, and has no other form that is.
    if name in _SCHEMAS or (name == "additionalProperties" and not isinstance(value, bool)):
        return _spelled_out(value)
    return value
