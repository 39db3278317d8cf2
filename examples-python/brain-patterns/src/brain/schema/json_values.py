"""Python values as JSON, strictly."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import math
import os
import sys
import uuid
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from typing import Any


#: What holds things in an order, and still holds them after it was read.
_ORDERED = (list, tuple, deque, range, KeysView, ValuesView, ItemsView)


def member_json(member: enum.Enum) -> Any:
    """What stands for a member of an enumeration: its value, or its name where a value of the class is no JSON scalar."""
    return member.value if by_value(type(member)) else member.name


def by_value(kind: type[enum.Enum]) -> bool:
    """Whether members are named by their values."""
    return issubclass(kind, enum.Flag) or all(is_scalar(one.value) for one in kind)


def is_scalar(value: Any) -> bool:
    """Whether it is a JSON value of its own, without a loss."""
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) in (bool, int, str)


def to_json(value: Any) -> Any:
    """A value made of what JSON has: dictionaries, lists, texts, numbers, booleans, None.

    :raises TypeError: for what has no form in JSON
    :raises ValueError: for numbers that JSON does not have, and for values that hold themselves
    """
    try:
        return _to_json(value)
    except RecursionError:
        raise ValueError("it is too deep, or holds itself") from None


def strict_json(value: Any) -> Any:
    """The same, of a value that a text in UTF-8 can hold.

    :raises TypeError, ValueError: as :func:`to_json`, also for half of a surrogate pair
    """
    plain = to_json(value)
    json.dumps(plain, ensure_ascii=False, allow_nan=False).encode()
    return plain


def _to_json(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return member_json(value)
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, Mapping):
        return {_key(name): _to_json(one) for name, one in value.items()}
    if isinstance(value, _ORDERED):
        return [_to_json(one) for one in value]
    if isinstance(value, (set, frozenset)):
        # Sets have no order: this one is the same in every run.
        return sorted((_to_json(one) for one in value), key=lambda one: json.dumps(one, sort_keys=True))
    return _object(value)


def _object(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return value.model_dump(mode="json")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (os.PathLike, uuid.UUID)):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _number(value: float) -> float:
    if isinstance(value, int):
        if abs(value) > sys.float_info.max:
            # It is JSON, but who reads it with floats, as most do, gets something else or nothing.
            raise ValueError("JSON has no number of this size")
        return int(value)
    if not math.isfinite(value):
        raise ValueError(f"JSON has no {value}")
    return float(value)


def _key(name: Any) -> str:
    plain = _to_json(name)
    if isinstance(plain, str):
        return plain
    if plain is None or isinstance(plain, (bool, int, float)):
        return json.dumps(plain)
    raise TypeError(f"a {type(name).__name__} cannot name a member of an object")


def json_text(value: Any) -> str:
    """The shortest text of a value, as UTF-8 can hold it.

    :raises TypeError, ValueError: as :func:`to_json`
    """
    plain = to_json(value)
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        # Half of a surrogate pair, which only an escape can tell.
        return json.dumps(plain, allow_nan=False, separators=(",", ":"))


def json_value(text: str | bytes) -> Any:
    """Reads JSON, strictly.

    :raises ValueError: for anything else, also for ``NaN``, numbers that no float can hold, and what is too deep
    """
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("it is too deep") from None


def _refused(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refused(text)


def same_json(one: Any, other: Any) -> bool:
    """Equality as JSON has it: ``1`` is ``1.0`` and is not ``true``."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    return bool(one == other)
