"""Functions whose hints are read twice: as they are, and postponed (test_hints.py)."""

import collections
import dataclasses
import enum
import typing
from typing import Annotated, Any, Generic, List, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

from brain.patterns import Context, tool

T = TypeVar("T")
Number = TypeVar("Number", int, float)
Text = TypeVar("Text", bound=str)
UserId = NewType("UserId", int)


class Color(str, enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Shape(enum.Enum):
    ROUND = (1, 1)
    FLAT = (1, 0)


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Point:
    """A place.

    Attributes:
        x: to the right
    """

    x: int
    y: int = 0
    tags: List[str] = dataclasses.field(default_factory=list)
    made: float = dataclasses.field(default_factory=lambda: 1.0)
    sum: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass
class Tree:
    value: int
    children: "List[Tree]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Box(Generic[T]):
    content: T
    more: Optional["Box[T]"] = None


class Plain(TypedDict):
    title: str


class Partly(Plain, total=False):
    pages: int


class Pair(NamedTuple):
    first: int
    second: str = "b"


class MyText(str):
    pass


@tool("x")
def table(a: str, b: int = 3, c: float = 1.5, d: bool = False, e: list = None, g: dict = None, h=1): ...


@tool("x")
def options(x: Optional[int] = None, y: "int | None" = None, z: Union[int, str] = 1): ...


@tool("x")
def literals(mode: Literal["r", "w"], n: Literal[1, 2] = 1, m: Literal["a", None] = None, t: Literal[True] = True): ...


@tool("x")
def containers(xs: "list[str]", m: "dict[str, int]", t: "tuple[int, ...]" = (), p: "tuple[int, str]" = (1, "a")): ...


@tool("x")
def old_containers(
    xs: typing.List[int], m: typing.Dict[str, Any], s: typing.Set[int], q: typing.Sequence[str], bare: typing.List = []
): ...


@tool("x")
def annotated(q: Annotated[str, "query text"], n: "Annotated[Annotated[int, 'inner'], 'outer']" = 2): ...


@tool("x")
def limited(n: Annotated[int, "a count", {"minimum": 1, "unit": "m"}] = 1): ...


@tool("x")
def enums(color: Color, level: Level = Level.LOW, shape: Shape = Shape.FLAT, rights: Rights = Rights.READ): ...


@tool("x")
def records(point: Point, tree: Tree, partly: Partly, pair: Pair = Pair(1)): ...


@tool("x")
def generics(a: Box[int], b: T, c: Number, d: Text, e: UserId = UserId(3)): ...


@tool("x")
def defaults(
    a: int = True,
    b: float = float("nan"),
    c: float = float("inf"),
    d: str = None,
    e: Any = object(),
    f: "list[int]" = [1, 2],
    g: bool = 1,
    i: float = 1,
    j: int = 1.0,
    k: Any = None,
    l: None = None,
    m: "Optional[list[int]]" = None,
): ...


@tool("x")
def others(a: MyText, b: bytes, c: complex, d: type, e: typing.Callable, f: object, g: "collections.Counter[str]"): ...


@tool("x")
def unions(
    a: Union[str, int], b: Union[bool, int], c: "Union[list[int], None]", d: Union[Color, int], e: Union[int, Any]
): ...


@tool("x")
def missing(a: "Nowhere" = None, b: int = 1, c: "list[Nowhere]" = None, d: "not a type at all" = ""): ...  # noqa: F821


@tool("x")
def later(a: "DefinedLater", b: "Optional[DefinedLater]" = None): ...


class DefinedLater(str, enum.Enum):
    ONE = "one"


@tool("x")
def with_context(q: str, context: Context, maybe: Optional[Context] = None): ...


def local():
    class Here(enum.Enum):
        A = "a"

    @tool("x")
    def inner(one: Here, many: "list[Here]"): ...

    return inner


local_class = local()


def aliased():
    Id = NewType("Id", int)
    Ids = "list[Id]"

    @tool("x")
    def inner(ids: Ids): ...

    return inner


local_alias = aliased()


class BeforeItsClass:
    @tool("x")
    def method(self, late: "Late", many: "list[Late]"): ...

    Late = NewType("Late", int)


method_before_its_class = BeforeItsClass().method


class Methods:
    class Nested(enum.Enum):
        N = "n"

    @tool("x")
    def method(self, q: str, nested: Nested = Nested.N) -> str:
        return f"{type(self).__name__} {q}"


method = Methods().method
