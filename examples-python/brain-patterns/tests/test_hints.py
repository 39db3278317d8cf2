"""From type hints to schemas, with hints as they are and with postponed ones."""

import collections
import contextlib
import dataclasses
import functools
import importlib.util
import json
import math
import pathlib
import sys
import types
import typing
import unittest
from typing import Annotated, Any, Final, Generic, Optional, TypedDict, TypeVar

from brain.patterns import ToolSpec, WithContent, tool
from brain.schema.check import fault_of

SOURCE = pathlib.Path(__file__).with_name("hint_cases.py").read_text(encoding="utf-8")


def load(name, source):
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"{name}.py", "exec", dont_inherit=True), vars(module))
    return module


EAGER = load("hint_cases_eager", SOURCE)
POSTPONED = load("hint_cases_postponed", f"from __future__ import annotations\n{SOURCE}")


def where(possible):
    """Leaves out a test of what this interpreter does not have: another one runs it."""
    return lambda test: test if possible else None


def properties(spec):
    return spec.parameters["properties"]


class Case(unittest.TestCase):
    maxDiff = None

    def assert_properties(self, name, expected, required=()):
        for module in (EAGER, POSTPONED):
            with self.subTest(module.__name__):
                schema = getattr(module, name).parameters
                self.assertEqual(schema["properties"], expected)
                self.assertEqual(list(schema["properties"]), list(expected))
                self.assertEqual(schema.get("required", []), list(required))
                self.assertNotIn("additionalProperties", schema)
                self.assertEqual(schema["type"], "object")


class Hints(Case):
    def test_the_published_table(self):
        self.assert_properties(
            "table",
            {
                "a": {"type": "string"},
                "b": {"type": "integer", "default": 3},
                "c": {"type": "number", "default": 1.5},
                "d": {"type": "boolean", "default": False},
                "e": {"type": "array"},
                "g": {"type": "object"},
                "h": {"type": "string"},
            },
            ["a"],
        )

    def test_optional_and_unions(self):
        self.assert_properties(
            "options",
            {
                "x": {"type": ["integer", "null"], "default": None},
                "y": {"type": ["integer", "null"], "default": None},
                "z": {"type": ["integer", "string"], "default": 1},
            },
        )
        self.assert_properties(
            "unions",
            {
                "a": {"type": ["string", "integer"]},
                "b": {"type": ["boolean", "integer"]},
                "c": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
                "d": {"anyOf": [{"type": "string", "enum": ["red", "blue"]}, {"type": "integer"}]},
                "e": {},
            },
            ["a", "b", "c", "d", "e"],
        )

    def test_literals(self):
        self.assert_properties(
            "literals",
            {
                "mode": {"type": "string", "enum": ["r", "w"]},
                "n": {"type": "integer", "enum": [1, 2], "default": 1},
                "m": {"type": ["string", "null"], "enum": ["a", None], "default": None},
                "t": {"type": "boolean", "enum": [True], "default": True},
            },
            ["mode"],
        )

    def test_containers(self):
        whole = {"type": "integer"}
        self.assert_properties(
            "containers",
            {
                "xs": {"type": "array", "items": {"type": "string"}},
                "m": {"type": "object", "additionalProperties": whole},
                "t": {"type": "array", "items": whole, "default": []},
                "p": {
                    "type": "array",
                    "prefixItems": [whole, {"type": "string"}],
                    "items": {"anyOf": [whole, {"type": "string"}]},
                    "minItems": 2,
                    "maxItems": 2,
                    "default": [1, "a"],
                },
            },
            ["xs", "m"],
        )
        self.assert_properties(
            "old_containers",
            {
                "xs": {"type": "array", "items": whole},
                "m": {"type": "object"},
                "s": {"type": "array", "items": whole, "uniqueItems": True},
                "q": {"type": "array", "items": {"type": "string"}},
                "bare": {"type": "array", "default": []},
            },
            ["xs", "m", "s", "q"],
        )

    def test_a_tuple_of_nothing_holds_nothing(self):
        @tool("x")
        def take(new: tuple[()], old: typing.Tuple[()], bare: tuple, old_bare: typing.Tuple): ...

        nothing = {"type": "array", "items": {}, "minItems": 0, "maxItems": 0}
        anything = {"type": "array"}
        properties = {"new": nothing, "old": nothing, "bare": anything, "old_bare": anything}
        self.assertEqual(take.parameters["properties"], properties)

    def test_annotated_describes(self):
        self.assert_properties(
            "annotated",
            {
                "q": {"type": "string", "description": "query text"},
                "n": {"type": "integer", "description": "outer", "default": 2},
            },
            ["q"],
        )
        self.assert_properties(
            "limited", {"n": {"type": "integer", "description": "a count", "minimum": 1, "default": 1}}
        )

    def test_keywords_in_annotated_are_json(self):
        examples = [pathlib.PurePosixPath("a"), {"b"}, (1, 2)]
        keywords = {"examples": examples, "minimum": math.nan, "title": 3, "description": "\ud800", "type": "x", 1: 2}

        @tool("x")
        def take(a: Annotated[int, keywords, {"deprecated": True, "maximum": object()}]): ...

        expected = {"type": "integer", "examples": ["a", ["b"], [1, 2]], "deprecated": True}
        self.assertEqual(properties(take)["a"], expected)

    def test_bounds_in_annotated(self):
        """Those of annotated_types, and of Field, which has them in a list."""

        @dataclasses.dataclass
        class Bound:
            ge: Any = None
            lt: Any = None
            min_length: Any = None
            max_length: Any = None
            pattern: Any = None

        field = types.SimpleNamespace(description="d", metadata=[Bound(ge=1), Bound(lt=9.5, pattern="^a")])

        @tool("x")
        def take(
            a: Annotated[int, field],
            b: Annotated[str, Bound(min_length=1, ge=3), Bound(max_length=5, pattern="^a")],
            c: Annotated["list[int]", Bound(min_length=2)],
            d: Annotated["dict[str, int]", Bound(max_length=2)],
            e: Annotated[Optional[int], Bound(ge=1)],
            f: Annotated[int, Bound(ge="1", lt=True), Bound(ge=float("-inf"))],
            g: Annotated["int | str", Bound(ge=1)],
            h: Annotated[int, Bound(ge=5)] = 1,
        ): ...

        whole = {"type": "integer"}
        expected = {
            "a": {**whole, "description": "d", "minimum": 1, "exclusiveMaximum": 9.5},
            "b": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a"},
            "c": {"type": "array", "items": whole, "minItems": 2},
            "d": {"type": "object", "additionalProperties": whole, "maxProperties": 2},
            "e": {"type": ["integer", "null"], "minimum": 1},
            "f": whole,
            "g": {"type": ["integer", "string"]},
            "h": {**whole, "minimum": 5},
        }
        self.assertEqual(properties(take), expected)

    def test_enumerations(self):
        self.assert_properties(
            "enums",
            {
                "color": {"type": "string", "enum": ["red", "blue"]},
                "level": {"type": "integer", "enum": [1, 2], "default": 1},
                "shape": {"type": "string", "enum": ["ROUND", "FLAT"], "default": "FLAT"},
                "rights": {"type": "integer", "default": 1},
            },
            ["color"],
        )

    def test_records(self):
        tree = {"$ref": "#/$defs/Tree"}
        self.assert_properties(
            "records",
            {
                "point": {
                    "type": "object",
                    "properties": {
                        "x": {"type": "integer", "description": "to the right"},
                        "y": {"type": "integer", "default": 0},
                        "tags": {"type": "array", "items": {"type": "string"}, "default": []},
                        "made": {"type": "number"},
                    },
                    "required": ["x"],
                },
                "tree": tree,
                "partly": {
                    "type": "object",
                    "properties": {"title": {"type": "string"}, "pages": {"type": "integer"}},
                    "required": ["title"],
                },
                "pair": {
                    "type": "array",
                    "prefixItems": [{"type": "integer"}, {"type": "string"}],
                    "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "minItems": 1,
                    "maxItems": 2,
                    "default": [1, "b"],
                },
            },
            ["point", "tree", "partly"],
        )
        node = {
            "type": "object",
            "properties": {
                "value": {"type": "integer"},
                "children": {"type": "array", "items": tree, "default": []},
            },
            "required": ["value"],
        }
        self.assertEqual(EAGER.records.parameters["$defs"], {"Tree": node})
        self.assertEqual(POSTPONED.records.parameters["$defs"], {"Tree": node})

    def test_generics(self):
        self.assert_properties(
            "generics",
            {
                "a": {"$ref": "#/$defs/Box"},
                "b": {},
                "c": {"type": ["integer", "number"]},
                "d": {"type": "string"},
                "e": {"type": "integer", "default": 3},
            },
            ["a", "b", "c", "d"],
        )
        self.assertEqual(EAGER.generics.parameters["$defs"]["Box"]["properties"]["content"], {"type": "integer"})

    def test_defaults_are_strict_json_that_fits(self):
        self.assert_properties(
            "defaults",
            {
                "a": {"type": "integer"},
                "b": {"type": "number"},
                "c": {"type": "number"},
                "d": {"type": "string"},
                "e": {},
                "f": {"type": "array", "items": {"type": "integer"}, "default": [1, 2]},
                "g": {"type": "boolean"},
                "i": {"type": "number", "default": 1},
                "j": {"type": "integer"},
                "k": {"default": None},
                "l": {"type": "null", "default": None},
                "m": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}], "default": None},
            },
        )
        for module in (EAGER, POSTPONED):
            json.dumps(module.defaults.parameters, allow_nan=False)

    def test_defaults_that_hold_things_are_written_as_what_they_hold(self):
        numbers = {"one": 1, "two": 2}
        once = iter([1, 2])

        @tool("x")
        def take(
            a: "typing.Sequence[int]" = range(3),
            b: "collections.deque[int]" = collections.deque([1]),
            c: "typing.Iterable[str]" = numbers.keys(),
            d: "typing.Iterable[int]" = numbers.values(),
            e: "typing.Iterable[int]" = once,
            f: str = b"x",
        ): ...

        defaults = {name: one.get("default") for name, one in take.parameters["properties"].items()}
        held = {"a": [0, 1, 2], "b": [1], "c": ["one", "two"], "d": [1, 2], "e": None, "f": None}
        self.assertEqual((defaults, list(once)), (held, [1, 2]))

    def test_a_number_that_no_float_holds_is_no_default(self):
        @tool("x")
        def take(a: int = 10**30, b: int = 10**400, c: int = -(10**400), d: "list[int]" = [10**400]): ...

        self.assertEqual(
            [one.get("default") for one in take.parameters["properties"].values()], [10**30, None, None, None]
        )

    def test_a_mutable_default_is_copied(self):
        items = [1]

        @tool("x")
        def take(xs: "list[int]" = items): ...

        take.parameters["properties"]["xs"]["default"].append(2)
        self.assertEqual(items, [1])

    def test_other_classes_are_strings(self):
        self.assert_properties(
            "others",
            {
                "a": {"type": "string"},
                "b": {"type": "string"},
                "c": {"type": "string"},
                "d": {"type": "string"},
                "e": {"type": "string"},
                "f": {},
                "g": {"type": "object", "additionalProperties": {"type": "integer"}},
            },
            ["a", "b", "c", "d", "e", "f", "g"],
        )

    def test_an_unresolvable_hint_is_a_string_for_its_parameter_alone(self):
        self.assert_properties(
            "missing",
            {
                "a": {"type": "string"},
                "b": {"type": "integer", "default": 1},
                "c": {"type": "string"},
                "d": {"type": "string", "default": ""},
            },
        )
        self.assertIsNone(EAGER.missing())

    def test_a_class_that_is_defined_later_is_found(self):
        one = {"type": "string", "enum": ["one"]}
        self.assert_properties("later", {"a": one, "b": {"anyOf": [one, {"type": "null"}], "default": None}}, ["a"])

    def test_a_local_class_is_found(self):
        here = {"type": "string", "enum": ["a"]}
        self.assert_properties("local_class", {"one": here, "many": {"type": "array", "items": here}}, ["one", "many"])

    def test_what_a_class_declares_after_its_method_is_found(self):
        whole = {"type": "integer"}
        self.assert_properties(
            "method_before_its_class", {"late": whole, "many": {"type": "array", "items": whole}}, ["late", "many"]
        )

    def test_a_local_alias_that_is_a_text_is_found(self):
        self.assert_properties("local_alias", {"ids": {"type": "array", "items": {"type": "integer"}}}, ["ids"])

    def test_a_class_inside_of_a_class_is_found(self):
        nested = {"type": "string", "enum": ["n"], "default": "n"}
        self.assert_properties("method", {"q": {"type": "string"}, "nested": nested}, ["q"])

    def test_the_context_is_in_no_schema(self):
        self.assert_properties("with_context", {"q": {"type": "string"}}, ["q"])

    def test_every_schema_takes_its_own_defaults(self):
        for spec in (one for one in vars(EAGER).values() if isinstance(one, ToolSpec)):
            for name, schema in spec.parameters["properties"].items():
                if "default" in schema:
                    self.assertIsNone(fault_of(schema, schema["default"], root=spec.parameters, exact=True), name)


class Odd(unittest.TestCase):
    """Hints that nobody should write, and that somebody does."""

    def test_hints_that_are_no_types(self):
        def odd(a: 5, b: {"x": 1}, c: [int], d: "the text to look for", e: ..., f: "1/0"): ...

        self.assertEqual({str(one) for one in properties(tool("x")(odd)).values()}, {"{'type': 'string'}"})

    def test_a_text_that_means_itself(self):
        Loop = "Loop"  # noqa: F841

        def odd(a: "Loop"): ...

        self.assertEqual(properties(tool("x")(odd)), {"a": {"type": "string"}})

    def test_final_and_required_are_looked_through(self):
        try:
            from typing import NotRequired, Required
        except ImportError:
            from typing import Optional as NotRequired
            from typing import Optional as Required

        class Given(TypedDict, total=False):
            a: Required[int]
            b: "NotRequired[str]"

        @dataclasses.dataclass
        class Fixed:
            n: Final[int] = 1

        @tool("x")
        def take(given: Given, fixed: Fixed): ...

        self.assertEqual(properties(take)["fixed"]["properties"], {"n": {"type": "integer", "default": 1}})
        if sys.version_info >= (3, 11):
            self.assertEqual(properties(take)["given"]["required"], ["a"])

    def test_generic_bases_pass_their_arguments_on(self):
        T = TypeVar("T")

        @dataclasses.dataclass
        class Base(Generic[T]):
            item: T

        @dataclasses.dataclass
        class Whole(Base[int]):
            pass

        U = TypeVar("U")

        class Between(Base[U]):
            pass

        class Far(Between[bool]):
            pass

        class Farther(Far):
            pass

        @tool("x")
        def take(whole: Whole, text: "Base[str]", far: Farther): ...

        found = {name: one["properties"]["item"]["type"] for name, one in properties(take).items()}
        self.assertEqual(found, {"whole": "integer", "text": "string", "far": "boolean"})

    def test_two_classes_of_one_name_that_hold_themselves(self):
        def make(kind):
            Node = dataclasses.make_dataclass("Node", [("value", kind)])
            Node.__dataclass_fields__["value"].type = Optional[Node]
            return Node

        One, Other = make(int), make(str)

        @tool("x")
        def take(one: One, other: Other): ...

        self.assertEqual(set(take.parameters["$defs"]), {"Node", "Node2"})

    def test_initial_values_that_are_no_fields(self):
        @dataclasses.dataclass
        class Made:
            seed: dataclasses.InitVar[int]
            value: int = dataclasses.field(init=False)

        @tool("x")
        def take(made: Made) -> Made: ...

        self.assertEqual(list(properties(take)["made"]["properties"]), ["seed"])
        self.assertEqual(list(take.output_schema["properties"]), ["value"])

    def test_defaults_that_cannot_be_compared(self):
        class Stubborn:
            def __eq__(self, other):
                raise RuntimeError("never")

        loop = []
        loop.append(loop)

        def take(a: Any = Stubborn(), b: Any = loop, c: Any = "\ud800", d: Any = int): ...

        self.assertEqual(properties(tool("x")(take)), {"a": {}, "b": {}, "c": {}, "d": {}})

    @where(sys.version_info >= (3, 12))
    def test_type_parameters_and_aliases(self):
        source = """
from brain.patterns import tool
type Ids = list[int]
type Json = dict[str, Json] | list[Json] | str
type Pairs[K] = list[tuple[K, K]]
@tool("x")
def take[T: int](a: T, ids: Ids, json: Json, pairs: Pairs[str] = []): ...
"""
        for text in (source, f"from __future__ import annotations\n{source}"):
            schema = load("type_aliases", text).take.parameters
            self.assertEqual(schema["properties"]["a"], {"type": "integer"})
            self.assertEqual(schema["properties"]["ids"], {"type": "array", "items": {"type": "integer"}})
            self.assertEqual(schema["properties"]["json"], {"$ref": "#/$defs/Json"})
            self.assertEqual(len(schema["$defs"]["Json"]["anyOf"]), 3)
            self.assertEqual(schema["properties"]["pairs"]["items"]["items"], {"type": "string"})

    @where(sys.version_info >= (3, 12))
    def test_type_parameters_of_classes(self):
        source = """
from typing import TypedDict, Unpack
from brain.patterns import tool
class More[T](TypedDict, total=False):
    more: list[T]
class Holder[T: int]:
    @tool("x")
    def take(self, a: T, b: "list[T]", **more: Unpack[More[str]]): ...
"""
        whole = {"type": "integer"}
        wanted = {
            "a": whole,
            "b": {"type": "array", "items": whole},
            "more": {"type": "array", "items": {"type": "string"}},
        }
        for text in (source, f"from __future__ import annotations\n{source}"):
            holder = load("type_parameters", text).Holder
            self.assertEqual(properties(holder.take), wanted)
            self.assertEqual(properties(holder().take), wanted)

    @where(sys.version_info >= (3, 13))
    def test_type_parameters_with_defaults(self):
        source = """
from brain.patterns import tool
@tool("x")
def take[T = int](a: T): ...
"""
        self.assertEqual(properties(load("type_defaults", source).take), {"a": {"type": "integer"}})

    @where(sys.version_info >= (3, 11))
    def test_keyword_arguments_with_names(self):
        from typing import Unpack

        class Options(TypedDict, total=False):
            depth: int

        @tool("x")
        def take(q: str, **options: Unpack[Options]): ...

        self.assertEqual(list(properties(take)), ["q", "depth"])
        self.assertEqual(take.parameters["required"], ["q"])

    @where(importlib.util.find_spec("pydantic") is not None)
    def test_pydantic_models(self):
        import pydantic

        class Author(pydantic.BaseModel):
            name: str = pydantic.Field(description="who wrote it")

        class Book(pydantic.BaseModel):
            title: str
            author: Author

        @tool("x")
        def take(book: Book, n: "Optional[Author]" = None) -> Book: ...

        schema = take.parameters
        self.assertEqual(schema["properties"]["book"]["properties"]["author"], {"$ref": "#/$defs/Author"})
        self.assertEqual(schema["$defs"]["Author"]["properties"]["name"]["description"], "who wrote it")
        self.assertEqual(take.output_schema["required"], ["title", "author"])


class Results(unittest.TestCase):
    def test_output_schemas(self):
        async def later() -> "list[int]": ...
        def nothing() -> None: ...
        def anything() -> Any: ...
        def unknown() -> functools.partial: ...
        def content() -> "WithContent[int]": ...
        def unsaid(): ...
        def unresolvable() -> "Nowhere": ...  # noqa: F821

        found = {
            fn.__name__: tool("x")(fn).output_schema
            for fn in (later, nothing, anything, unknown, content, unsaid, unresolvable)
        }
        self.assertEqual(
            found,
            {
                "later": {"type": "array", "items": {"type": "integer"}},
                "nothing": {"type": "null"},
                "anything": None,
                "unknown": None,
                "content": {"type": "integer"},
                "unsaid": None,
                "unresolvable": None,
            },
        )

    def test_a_result_has_all_fields_and_a_type_at_its_root(self):
        def point() -> EAGER.Point: ...
        def tree() -> EAGER.Tree: ...

        self.assertEqual(tool("x")(point).output_schema["required"], ["x", "y", "tags", "made", "sum"])
        self.assertEqual(tool("x")(tree).output_schema["type"], "object")

    def test_generators_give_lists(self):
        def numbers() -> "typing.Iterator[int]":
            yield 1

        async def texts() -> "typing.AsyncIterator[str]":
            yield "a"

        def sent() -> "typing.Generator[int, str, bool]":
            yield 1

        def hands_one_on() -> "typing.Iterator[int]":
            return iter([1])

        schemas = [tool("x")(one).output_schema for one in (numbers, texts, sent, hands_one_on)]
        whole = {"type": "array", "items": {"type": "integer"}}
        self.assertEqual(schemas, [whole, {"type": "array", "items": {"type": "string"}}, whole, None])
        self.assertIsNone(tool("x")(contextlib.contextmanager(numbers)).output_schema)


class Descriptions(unittest.TestCase):
    def test_of_fields_come_from_their_metadata_as_well(self):
        @dataclasses.dataclass
        class Place:
            """Somewhere.

            Attributes:
                x: to the right
                y: overridden
            """

            x: int
            y: int = dataclasses.field(default=0, metadata={"description": "upwards"})
            z: int = dataclasses.field(default=0, metadata={"description": 5})

        @tool("x")
        def go(place: Place): ...

        fields = go.parameters["properties"]["place"]["properties"]
        said = {"x": "to the right", "y": "upwards", "z": None}
        self.assertEqual({name: one.get("description") for name, one in fields.items()}, said)

    def test_come_from_a_docstring_in_googles_style(self):
        def search(query, limit: int = 3, kind: Annotated[str, "by hint"] = "", *rest, bare=None):
            """Search.

            Args:
                query (str, optional): What to look for,
                    on two lines: yes.
                limit: How many.
                kind: Loses.

                *rest: More.
                bare

            Returns:
                limit: not this.
            """

        found = {name: one.get("description") for name, one in properties(tool("x")(search)).items()}
        expected = {
            "query": "What to look for, on two lines: yes.",
            "limit": "How many.",
            "kind": "by hint",
            "bare": None,
        }
        self.assertEqual(found, expected)

    def test_of_methods_and_objects_that_are_called(self):
        class Search:
            def __call__(self, query: str):
                """Args:
                query: What to look for.
                """

        self.assertEqual(
            properties(tool("x")(Search()))["query"], {"type": "string", "description": "What to look for."}
        )


if __name__ == "__main__":
    unittest.main()
