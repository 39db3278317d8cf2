"""Where the names in an annotation are looked up."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ForwardRef, TypeVar


class UnresolvedHint(Exception):
    """An annotation that cannot be evaluated (yet)."""


@dataclass(frozen=True)
class Scope:
    """Name spaces, the innermost first, and what the type variables of a generic class stand for."""

    spaces: tuple[Mapping[str, Any], ...] = ()
    variables: Mapping[Any, Any] = field(default_factory=dict)

    def __deepcopy__(self, _: dict[int, Any]) -> Scope:
        return self  # name spaces hold modules, which cannot be copied and need not be

    def evaluate(self, text: str) -> Any:
        """The object that an annotation's text means.

        :raises UnresolvedHint: whatever goes wrong: the text may be prose.
        """
        try:
            return eval(text, {}, ChainMap(*(dict(space) for space in self.spaces)))
        except Exception as error:
            raise UnresolvedHint(f'Cannot resolve the type hint "{text}": {error}') from None

    def evaluate_reference(self, reference: ForwardRef) -> Any:
        """The same for a reference that ``typing`` made of a text; it may know more name spaces than this scope."""
        module = reference.__forward_module__
        known = sys.modules.get(module) if isinstance(module, str) else module
        scope = self if known is None else Scope((*self.spaces, vars(known)), self.variables)
        try:
            return scope.evaluate(reference.__forward_arg__)
        except UnresolvedHint:
            # Python 3.14: references of annotations that are evaluated late have the cells of their function.
            evaluate = getattr(reference, "evaluate", None)
            if evaluate is None:
                raise
            try:
                return evaluate()
            except Exception as error:
                raise UnresolvedHint(str(error)) from None

    def resolved(self, hint: Any) -> Any:
        """A hint without quotes around the whole of it."""
        # `X = "X"` would go round for ever.
        for _ in range(8):
            if isinstance(hint, str):
                hint = self.evaluate(hint)
            elif isinstance(hint, ForwardRef):
                hint = self.evaluate_reference(hint)
            else:
                return hint
        raise UnresolvedHint("Cannot resolve a type hint: it is a text that means itself")

    def substitute(self, hint: Any) -> Any:
        """A hint with type variables replaced by what they stand for here."""
        if isinstance(hint, TypeVar):
            return self.variables.get(hint, hint)
        parameters = None if isinstance(hint, type) else getattr(hint, "__parameters__", None)
        if not parameters or not any(one in self.variables for one in parameters):
            return hint
        return hint[tuple(self.variables.get(one, one) for one in parameters)]

    def with_members_of(self, owner: type) -> Scope:
        """Knows also what a class body declares after a method, and the class's type parameters."""
        parameters = {one.__name__: one for one in getattr(owner, "__type_params__", ())}
        members = {name: value for name, value in vars(owner).items() if _can_be_in_hint(value)}
        return Scope((*self.spaces, parameters, members), self.variables)

    def of_class(self, owner: type, arguments: tuple[Any, ...] = ()) -> Scope:
        """The scope of annotations in a class body. The module comes before the class: ``date: date = …`` hides its type."""
        module = sys.modules.get(owner.__module__)
        own: dict[str, Any] = {one.__name__: one for one in getattr(owner, "__type_params__", ())}
        own[owner.__name__] = owner
        spaces = (own, {} if module is None else vars(module), vars(owner), *self.spaces)
        return Scope(spaces, self._variables_of(owner, arguments))

    def _variables_of(self, owner: type, arguments: tuple[Any, ...]) -> dict[Any, Any]:
        parameters = getattr(owner, "__parameters__", ())
        bound = dict(zip(parameters, (self.substitute(one) for one in arguments)))
        within = Scope(self.spaces, bound)
        for base in (one for kind in owner.__mro__ for one in vars(kind).get("__orig_bases__", ())):
            origin = getattr(base, "__origin__", None)
            if isinstance(origin, type) and hasattr(origin, "__parameters__"):
                bound = {**within._variables_of(origin, base.__args__), **bound}
        return bound


def functions_of(fn: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A callable and what it stands for: through partials, wrappers, methods, objects that are called, and classes."""
    seen: list[int] = []
    current: Any = fn
    while current is not None and id(current) not in seen:
        seen.append(id(current))
        yield current
        if isinstance(current, functools.partial):
            current = current.func
        elif isinstance(current, (types.MethodType, staticmethod, classmethod)):
            current = current.__func__
        elif getattr(current, "__wrapped__", None) is not None:
            current = current.__wrapped__
        elif inspect.isclass(current):
            current = current.__init__
        elif not inspect.isroutine(current):
            current = getattr(type(current), "__call__", None)
        else:
            return


def annotations_of(owner: type) -> dict[str, Any]:
    """The annotations of a class and of those it is made from, unevaluated where they name what is not there yet."""
    found: dict[str, Any] = {}
    for base in reversed(owner.__mro__):
        if sys.version_info >= (3, 14):
            import annotationlib

            found.update(annotationlib.get_annotations(base, format=annotationlib.Format.FORWARDREF))
        else:
            found.update(vars(base).get("__annotations__", {}))
    return found


def scope_of(fn: Callable[..., Any], frame: types.FrameType | None = None) -> Scope:
    """The scope of a callable's annotations.

    :param frame: where it was just defined. Local classes that only its annotations name are nowhere else.
    """
    spaces: list[Mapping[str, Any]] = []
    modules: list[Mapping[str, Any]] = []
    for function in functions_of(fn):
        if not isinstance(function, types.FunctionType):
            continue
        spaces.append({one.__name__: one for one in getattr(function, "__type_params__", ())})
        spaces.append(_closure_of(function))
        spaces.extend(_frames_around(function, frame))
        modules.append(function.__globals__)
    return Scope((*spaces, *modules))


def _closure_of(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            pass  # not assigned yet
    return found


def _frames_around(function: types.FunctionType, frame: types.FrameType | None) -> Iterator[dict[str, Any]]:
    """The local names of the bodies around a function, of classes and functions, as its qualified name tells them."""
    bodies = [part for part in function.__qualname__.split(".")[:-1] if part != "<locals>"]
    while frame is not None and bodies and frame.f_globals is function.__globals__:
        if frame.f_code.co_name == bodies[-1]:
            bodies.pop()
            yield {name: value for name, value in frame.f_locals.items() if _can_be_in_hint(value)}
        frame = frame.f_back


def _can_be_in_hint(value: Any) -> bool:
    """What else a body holds is not kept alive. A text may be an alias: ``Ids: TypeAlias = "list[Id]"``."""
    is_alias = type(value).__module__ in ("typing", "typing_extensions") or type(value) is types.GenericAlias
    return isinstance(value, (type, types.ModuleType, types.UnionType, str)) or is_alias
