"""What a type hint says about JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

JsonSchema = dict[str, Any]


def as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Shape:
    """The schema of a hint, and how a JSON value that the schema accepts becomes a value of the hint's type."""

    schema: JsonSchema
    decode: Callable[[Any], Any] = as_it_is

    @property
    def is_plain(self) -> bool:
        """Whether JSON values are values of the type."""
        return self.decode is as_it_is


def of_type(name: str) -> Shape:
    return Shape({"type": name})


def whole_number(value: Any) -> Any:
    # JSON has one kind of number: 1e21 may arrive for an integer.
    return int(value) if isinstance(value, float) and value.is_integer() else value
