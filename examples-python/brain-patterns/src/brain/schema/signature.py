"""The schema of a function's parameters, and calls with arguments by name."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from .docstrings import described_parameters
from .reader import HintReader
from .records import is_typed_dict, object_schema
from .scope import Scope, UnresolvedHint, annotations_of, functions_of
from .shape import JsonSchema, Shape
from .special import special_name

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_ASYNC_ORIGINS = ("Awaitable", "Coroutine")
_YIELDING_ORIGINS = ("Generator", "Iterator", "AsyncGenerator", "AsyncIterator", "AsyncIterable")


@dataclass(frozen=True)
class Parameters:
    """What is known of a function's parameters.

    :ivar schema: the JSON Schema object
    :ivar shapes: of each parameter that callers give
    :ivar injected: parameters that the machinery gives, with their hints: they are in no schema
    :ivar takes_any: whether it has ``**kwargs``, and so takes names that are in no schema
    :ivar unresolved: whether a hint could not be evaluated
    """

    schema: JsonSchema
    shapes: Mapping[str, Shape]
    injected: Mapping[str, Any]
    takes_any: bool
    unresolved: bool


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """:raises ValueError: for built-in functions that have none"""
    target: Any = fn.__func__ if isinstance(fn, classmethod) else fn
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            return inspect.signature(target, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(target)
    except (TypeError, ValueError) as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise ValueError(f'Cannot read the parameters of "{name}": {error}. Give them with parameters={{…}}') from None


def read_parameters(
    fn: Callable[..., Any], scope: Scope, *, skip: int = 0, is_injected: Callable[[Any], bool] = lambda hint: False
) -> Parameters:
    """Infers the schema of a function's parameters.

    :param skip: how many come first that callers do not give: the receiver of a method
    :param is_injected: tells hints of what is not the caller's to give
    :raises ValueError: as :func:`signature_of`
    """
    reader = HintReader()
    described = described_parameters(docstring_of(fn))
    shapes: dict[str, Shape] = {}
    properties: JsonSchema = {}
    required: list[str] = []
    injected: dict[str, Any] = {}
    parameters = list(signature_of(fn).parameters.values())[skip:]
    for one in parameters:
        if one.kind in _VARIADIC:
            _read_unpacked(one, scope, reader, (shapes, properties, required))
            continue
        hint = str if one.annotation is inspect.Parameter.empty else one.annotation
        if _is_injected(hint, scope, is_injected):
            injected[one.name] = scope.resolved(hint)
            continue
        shape = shapes[one.name] = reader.read(hint, scope)
        schema = dict(shape.schema)
        if one.name in described:
            schema.setdefault("description", described[one.name])
        if one.default is inspect.Parameter.empty:
            required.append(one.name)
        else:
            schema = reader.with_default(Shape(schema), one.default)
        properties[one.name] = schema
    schema = object_schema(properties, required)
    if reader.definitions:
        schema["$defs"] = reader.definitions
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
    return Parameters(schema, shapes, injected, takes_any, reader.unresolved)


def _read_unpacked(
    one: inspect.Parameter, scope: Scope, reader: HintReader, found: tuple[dict[str, Shape], JsonSchema, list[str]]
) -> None:
    """``**options: Unpack[Options]`` names its arguments; ``*args`` and ``**kwargs`` do not."""
    shapes, properties, required = found
    try:
        hint = scope.resolved(one.annotation)
        owner: Any = scope.resolved(get_args(hint)[0]) if special_name(hint) == "Unpack" else None
    except (UnresolvedHint, IndexError):
        return
    home = get_origin(owner) or owner
    if one.kind is not inspect.Parameter.VAR_KEYWORD or not is_typed_dict(home):
        return
    schema = reader.read(owner, scope).schema
    within = scope.of_class(home, tuple(map(scope.substitute, get_args(owner))))
    if "properties" in schema:
        properties.update(schema["properties"])
        required.extend(schema.get("required", []))
        shapes.update({name: reader.read(one, within) for name, one in annotations_of(home).items()})


def _is_injected(hint: Any, scope: Scope, is_injected: Callable[[Any], bool]) -> bool:
    try:
        return is_injected(scope.resolved(hint))
    except UnresolvedHint:
        return False


def read_result(
    fn: Callable[..., Any], scope: Scope, *, unwrap: Callable[[Any], Any] = lambda hint: hint
) -> JsonSchema | None:
    """The schema of what a function returns; None where its hint says nothing about JSON.

    :param unwrap: takes the hint of a value out of that of what holds it
    """
    try:
        hint = signature_of(fn).return_annotation
        if hint is inspect.Signature.empty:
            return None
        hint = scope.resolved(hint)
        origin = getattr(get_origin(hint), "__name__", "")
        if origin in _ASYNC_ORIGINS:
            hint = scope.resolved(get_args(hint)[-1])
        elif origin in _YIELDING_ORIGINS and _is_generator(fn):
            hint = list[get_args(hint)[0]]  # type: ignore[misc]
        hint = unwrap(hint)
    except (ValueError, UnresolvedHint):
        return None
    reader = HintReader(output=True)
    schema = dict(reader.read(hint, scope).schema)
    if reader.definitions:
        # Clients look for the type at the root, so a reference is no root.
        whole = reader.definitions.get(schema.pop("$ref", "").removeprefix("#/$defs/"), {})
        schema = {**whole, **schema, "$defs": reader.definitions}
    return schema or None


def _is_generator(fn: Callable[..., Any]) -> bool:
    """Not through what wraps it: that may make something else of a generator, as ``contextmanager`` does."""
    target: Any = fn.__func__ if isinstance(fn, classmethod) else fn
    return inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)


async def ended(value: Any) -> Any:
    """What an awaitable comes to; of an async generator, the list of what it yields."""
    return [one async for one in value] if inspect.isasyncgen(value) else await value


def docstring_of(fn: Callable[..., Any]) -> str | None:
    """The docstring of the function that a callable stands for."""
    known = list(functions_of(fn))
    texts = [getattr(one, "__doc__", None) for one in known if inspect.isroutine(one) or inspect.isclass(one)]
    # An object that can be called: its class says what it is for, where its method does not.
    texts += [type(one).__doc__ for one in known if _is_called_object(one)]
    return next((text for text in texts if isinstance(text, str) and text.strip()), None)


def _is_called_object(one: Any) -> bool:
    called = getattr(type(one), "__call__", None)
    return isinstance(called, types.FunctionType) and not hasattr(one, "__wrapped__")


def call_by_name(fn: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Calls a function with arguments by name, also those that Python takes by position only.

    :raises TypeError: as Python does, for what is missing or not known
    """
    keywords = dict(arguments)
    try:
        parameters = signature_of(fn).parameters.values()
    except ValueError:
        return fn(**keywords)
    by_position = [one for one in parameters if one.kind is inspect.Parameter.POSITIONAL_ONLY]
    given = [index for index, one in enumerate(by_position) if one.name in keywords]
    positional = []
    for one in by_position[: max(given, default=-1) + 1]:
        if one.name not in keywords and one.default is inspect.Parameter.empty:
            raise TypeError(f"missing the argument {one.name!r}")
        positional.append(keywords.pop(one.name, one.default))
    return fn(*positional, **keywords)
