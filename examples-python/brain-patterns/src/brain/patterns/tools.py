"""Tools: functions with a name, a description and the JSON Schema of their parameters."""

from __future__ import annotations

import inspect
import re
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..schema.reader import HintReader
from ..schema.records import object_schema
from ..schema.scope import Scope, functions_of, scope_of
from ..schema.shape import Shape
from ..schema.signature import Parameters, docstring_of, read_parameters, read_result, signature_of
from .context import is_context, options_hint, value_hint

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_RECEIVERS = ("self", "cls")


@dataclass
class ToolSpec:
    """A callable tool with typed metadata. Agents take it like the function that it wraps.

    :ivar name: what models call it by: 1 to 64 letters, digits, ``_`` or ``-``
    :ivar fn: the function
    :ivar description: what models read
    :ivar parameters: JSON Schema object of the arguments
    :raises ValueError: for another name
    """

    name: str
    fn: Callable[..., Any]
    description: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name(self.name)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with what it is given, unchecked."""
        return self.fn(*args, **kwargs)

    def to_openai_schema(self) -> dict[str, Any]:
        """The tool as OpenAI's function calling wants it: ``{"type": "function", "function": {…}}``."""
        return {"type": "function", "function": self.to_dict()}

    def to_anthropic_schema(self) -> dict[str, Any]:
        """The tool as Anthropic's tool use wants it: ``name``, ``description`` and ``input_schema``."""
        return {"name": self.name, "description": self.description, "input_schema": self.parameters}

    def to_dict(self) -> dict[str, Any]:
        """Name, description and parameters, as JSON can hold them."""
        return {"name": self.name, "description": self.description, "parameters": self.parameters}

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """JSON Schema of what the function returns, of its return type; None where that says nothing."""
        return read_result(self.fn, _declaration_of(self).scope, unwrap=value_hint)

    def __set_name__(self, owner: type, name: str) -> None:
        """Its class is complete: now it is sure that it is a method, whatever its first parameter is called."""
        declared: _Declaration | None = vars(self).get("_declaration")
        if declared is None:
            return
        declared.scope = declared.scope.with_members_of(owner)
        if declared.skip > 0 or declared.is_static:
            return
        home, _, _ = getattr(self.fn, "__qualname__", "").rpartition(".")
        if home == owner.__qualname__ or _first_parameter(self.fn) in _RECEIVERS:
            self._become_method()

    def _become_method(self) -> None:
        declared: _Declaration | None = vars(self).get("_declaration")
        if declared is None or declared.skip > 0:
            return
        declared.skip = 1
        if declared.is_inferred:
            vars(self).pop("parameters", None)

    def __get__(self, instance: Any, owner: type | None = None) -> ToolSpec:
        """A method is bound to its object, as functions are; what is no method stays as it is."""
        if isinstance(instance, type) and instance is owner:
            self._become_method()  # `@classmethod` above it asks like this before Python 3.13
        declared: _Declaration | None = vars(self).get("_declaration")
        bind = getattr(self.fn, "__get__", None)
        is_class_method = isinstance(self.fn, classmethod)
        if declared is None or declared.skip == 0 or bind is None or (instance is None and not is_class_method):
            return self
        bound = ToolSpec(self.name, bind(instance, owner), self.description, self.parameters)
        _adorn(bound, bound.fn, _Declaration(declared.scope, 0, declared.is_inferred))
        return bound

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # `inspect.signature` of the tool is that of the function that it has now.
            if name == "__wrapped__" and "fn" in vars(self):
                return _function_of(self.fn)
            # Parameters are read when they are first asked for, where that was too early when the tool was declared.
            declared = vars(self).get("_declaration")
            if name != "parameters" or declared is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            self.parameters = _parameters(self.fn, declared).schema
            return self.parameters


@dataclass
class _Declaration:
    """What the decorator knew. It is no field of the tool.

    :ivar skip: 1 for a method, whose first parameter nobody gives
    :ivar is_inferred: whether the parameters are read from the hints
    :ivar is_static: whether it says that it is no method
    """

    scope: Scope
    skip: int
    is_inferred: bool
    is_static: bool = False


def tool(
    description: str, *, name: str | None = None, parameters: dict[str, Any] | None = None
) -> Callable[[Callable[..., Any]], ToolSpec]:
    """Makes a tool of the function below it.

    :param description: what models read
    :param name: default, and for the empty text: the function's name
    :param parameters: JSON Schema object of the arguments; default: inferred from the type hints
    :raises TypeError: when it is used without a description
    :raises ValueError: for a name that providers refuse, and for a built-in function without a readable signature

    Example::

        @tool("Search local notes")
        def search(query: str, limit: int = 10) -> list[str]: ...
    """
    if not isinstance(description, str):
        what = getattr(description, "__name__", type(description).__name__)
        raise TypeError(f'Cannot make a tool of "{what}": its description must be a text, as in @tool("Search notes")')
    if parameters is not None and not isinstance(parameters, dict):
        raise TypeError(f"Cannot declare a tool: parameters must be a dict, not {type(parameters).__name__}")

    def decorator(fn: Callable[..., Any]) -> ToolSpec:
        plain: Any = fn.__func__ if isinstance(fn, staticmethod) else fn
        scope = scope_of(plain, sys._getframe(1))
        # A tool of a tool takes what that one takes, also where that was written by hand.
        given = plain.parameters if parameters is None and _is_by_hand(plain) else parameters
        declared = _Declaration(scope, _receivers(fn), given is None, isinstance(fn, staticmethod))
        resolved = given
        read: Parameters | None = None
        if resolved is None:
            read = _parameters(plain, declared)
            resolved = read.schema
        spec = ToolSpec(name or _name_of(plain), plain, description, resolved)
        _adorn(spec, plain, declared)
        if read is not None and read.unresolved:
            del spec.parameters
        return spec

    return decorator


def tools_to_dict(specs: Iterable[ToolSpec]) -> dict[str, ToolSpec]:
    """Tools by name, as agents take them: the tools themselves.

    :raises ValueError: when two have one name
    """
    found: dict[str, ToolSpec] = {}
    for one in specs:
        spec = _of_class_method(one)
        if not isinstance(spec, ToolSpec):
            raise TypeError(f"Cannot list {spec!r} as a tool: it is no ToolSpec. Decorate it with @tool(…)")
        if spec.name in found:
            raise ValueError(f'Cannot offer two tools named "{spec.name}": give one of them another name=')
        found[spec.name] = spec
    return found


def tools_to_openai_schemas(specs: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """The tools as OpenAI's function calling wants them, in their order.

    :raises ValueError: when two have one name
    """
    return [spec.to_openai_schema() for spec in tools_to_dict(specs).values()]


def parameters_of(spec: ToolSpec) -> Parameters:
    """What is known of a tool's parameters from its hints, whatever schema it was given.

    :raises ValueError: for a function without a readable signature
    """
    return _parameters(spec.fn, _declaration_of(spec))


def options_of(spec: ToolSpec) -> tuple[Shape, dict[str, Any]] | None:
    """The shape of a tool's options with their whole schema; None where its context says nothing of them."""
    hints = [options_hint(one) for one in parameters_of(spec).injected.values()]
    hint = next((one for one in hints if one is not None), None)
    if hint is None:
        return None
    reader = HintReader()
    shape = reader.read(hint, _declaration_of(spec).scope)
    definitions = {"$defs": reader.definitions} if reader.definitions else {}
    return shape, {**shape.schema, **definitions}


def spec_of(name: str, fn: Callable[..., Any]) -> ToolSpec:
    """A tool under the name that an agent knows it by; of a plain callable, the docstring is the description."""
    fn = _of_class_method(fn)
    if isinstance(fn, ToolSpec):
        return fn if fn.name == name else ToolSpec(name, fn, fn.description, fn.parameters)
    if not callable(fn):
        raise TypeError(f'Cannot take "{name}" as a tool: a {type(fn).__name__} cannot be called')
    description = inspect.cleandoc(docstring_of(fn) or "")
    try:
        parameters = read_parameters(fn, scope_of(fn), is_injected=is_context).schema
    except ValueError:
        parameters = object_schema({}, [])  # a built-in function, which does not say what it takes
    return ToolSpec(name, fn, description, parameters)


def _of_class_method(fn: Any) -> Any:
    """The tool bound to its class, of what ``@classmethod`` makes of a tool; anything else as it is."""
    if not isinstance(fn, types.MethodType) or not isinstance(fn.__func__, ToolSpec):
        return fn
    fn.__func__._become_method()
    return fn.__func__.__get__(fn.__self__, type(fn.__self__))


def check_name(name: str) -> None:
    """:raises ValueError: for a name that a provider of models would refuse (contract A22)"""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f'Cannot name a tool {name!r}: it must be 1 to 64 letters, digits, "_" or "-". Give another one with name='
        )


def _adorn(spec: ToolSpec, fn: Any, declared: _Declaration) -> None:
    attributes = vars(spec)
    attributes.update(__name__=spec.name, __doc__=docstring_of(fn), _declaration=declared)
    attributes["__isabstractmethod__"] = getattr(fn, "__isabstractmethod__", False)
    if sys.version_info >= (3, 12) and inspect.iscoroutinefunction(_function_of(fn)):
        inspect.markcoroutinefunction(spec)


def _function_of(fn: Any) -> Any:
    return fn.__func__ if isinstance(fn, classmethod) else fn


def _declaration_of(spec: ToolSpec) -> _Declaration:
    declared: _Declaration | None = vars(spec).get("_declaration")
    return declared if declared is not None else _Declaration(scope_of(spec.fn), 0, False)


def _parameters(fn: Callable[..., Any], declared: _Declaration) -> Parameters:
    return read_parameters(fn, declared.scope, skip=declared.skip, is_injected=is_context)


def _is_by_hand(fn: Any) -> bool:
    return isinstance(fn, ToolSpec) and not _declaration_of(fn).is_inferred


def _name_of(fn: Callable[..., Any]) -> str:
    """The name of the function that a callable stands for, or of its class."""
    if isinstance(fn, ToolSpec):
        return fn.name
    names = (getattr(one, "__name__", None) for one in functions_of(fn))
    known = next((one for one in names if isinstance(one, str)), type(fn).__name__)
    return type(fn).__name__ if known == "__call__" else known


def _receivers(fn: Any) -> int:
    """1 where a function stands in a class body and its first parameter is named as that of a method."""
    if isinstance(fn, staticmethod):
        return 0
    if isinstance(fn, classmethod):
        return 1
    home, _, _ = getattr(fn, "__qualname__", "").rpartition(".")
    is_in_class = inspect.isfunction(fn) and home != "" and not home.endswith("<locals>")
    return 1 if is_in_class and _first_parameter(fn) in _RECEIVERS else 0


def _first_parameter(fn: Callable[..., Any]) -> str | None:
    try:
        return next(iter(signature_of(fn).parameters), None)
    except ValueError:
        return None
