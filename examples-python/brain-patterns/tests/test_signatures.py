"""Which parameters a tool has, and how it is called: methods, async functions, partials, variadics."""

import abc
import asyncio
import copy
import functools
import inspect
import math
import sys
import unittest

from brain.patterns import ReActAgent, ToolSpec, tool, tools_to_dict, tools_to_openai_schemas
from brain.schema.signature import call_by_name


def parameters(spec):
    return list(spec.parameters["properties"]), spec.parameters.get("required", [])


class Kinds(unittest.TestCase):
    def test_variadic_parameters_are_not_announced(self):
        @tool("x")
        def f(x: int, *args, **kwargs):
            return x, args, kwargs

        self.assertEqual(f.parameters, {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]})
        self.assertEqual(f(x=1), (1, (), {}))
        self.assertEqual(f(1, 2, y=3), (1, (2,), {"y": 3}))

    def test_keyword_only_parameters_are(self):
        @tool("x")
        def k(a, *, b: int, c=2):
            return a, b, c

        self.assertEqual(parameters(k), (["a", "b", "c"], ["a", "b"]))

    def test_positional_only_parameters_are_callable_by_name(self):
        @tool("x")
        def p(a, b=1, c=2, /, **more):
            return a, b, c, more

        self.assertEqual(parameters(p), (["a", "b", "c"], ["a"]))
        self.assertEqual(call_by_name(p, {"c": 5, "a": 0, "d": 6}), (0, 1, 5, {"d": 6}))
        with self.assertRaisesRegex(TypeError, "missing the argument 'a'"):
            call_by_name(p, {"b": 5})

    def test_a_parameter_may_have_any_name(self):
        @tool("x")
        def named(self: int, cls: int = 0, args: int = 0, fn: int = 0, **kwargs):
            return self, cls, args, fn, kwargs

        given = {"self": 1, "cls": 2, "args": 3, "fn": 4, "name": 5, "instance": 6}
        for result in (named(**given), call_by_name(named, given)):
            self.assertEqual(result, (1, 2, 3, 4, {"name": 5, "instance": 6}))

    def test_a_tool_made_by_hand_has_the_signature_of_its_function(self):
        def one(a, /, b=2): ...

        def other(c): ...

        spec = ToolSpec("x", one, "x")
        self.assertEqual(list(inspect.signature(spec).parameters), ["a", "b"])
        spec.fn = other
        self.assertEqual(list(inspect.signature(spec).parameters), ["c"])
        self.assertEqual(list(inspect.signature(ToolSpec).parameters), ["name", "fn", "description", "parameters"])

    def test_without_parameters_there_are_no_required_ones(self):
        @tool("x")
        def none(): ...

        self.assertEqual(none.parameters, {"type": "object", "properties": {}})

    def test_built_in_functions(self):
        self.assertEqual(parameters(tool("Root")(math.sqrt))[0], ["x"])
        with self.assertRaisesRegex(ValueError, r'Cannot read the parameters of "max".*parameters='):
            tool("Largest")(max)
        self.assertEqual(tool("Largest", parameters={"type": "object"})(max)(1, 2), 2)


class Base:
    greeting = "hello"

    @tool("Greets")
    def greet(self, name: str) -> str:
        """Says it."""
        return f"{self.greeting} {name}"

    @tool("Odd", name="odd")
    def receiver_of_another_name(this, name: str) -> str:
        return f"{this.greeting} {name}"

    @tool("Plain")
    @staticmethod
    def inner_static(self_is_no_receiver: str):
        return self_is_no_receiver

    @staticmethod
    @tool("Plain")
    def outer_static(name: str):
        return name

    @tool("Of the class")
    @classmethod
    def inner_class(cls, name: str):
        return cls.__name__, name

    @classmethod
    @tool("Of the class")
    def outer_class(cls, name: str):
        return cls.__name__, name

    by_hand = tool("By hand", name="by_hand", parameters={"type": "object"})(lambda self, name: (self.greeting, name))


class Derived(Base):
    greeting = "hi"

    @tool("Greets twice")
    def greet(self, name: str) -> str:
        return super().greet(name) * 2


@tool("Stands alone")
def alone(name: str) -> str:
    return name


class Holder:
    kept = alone


class Methods(unittest.TestCase):
    def test_the_receiver_is_not_in_the_schema(self):
        one = Base()
        for spec in (
            one.greet,
            Base.greet,
            one.receiver_of_another_name,
            one.outer_class,
            Base.inner_class,
            one.outer_static,
        ):
            self.assertEqual(spec.to_dict()["parameters"]["properties"], {"name": {"type": "string"}})
            self.assertEqual(spec.to_anthropic_schema()["input_schema"]["required"], ["name"])

    def test_calls_of_methods_get_it(self):
        one, other = Base(), Derived()
        self.assertEqual(
            (one.greet("Ada"), other.greet("Ada"), Base.greet(one, "Ada")), ("hello Ada", "hi Adahi Ada", "hello Ada")
        )
        self.assertEqual(one.receiver_of_another_name("Ada"), "hello Ada")
        self.assertEqual(one.by_hand("Ada"), ("hello", "Ada"))
        self.assertEqual((Derived.inner_class("x"), other.outer_class("x")), (("Derived", "x"), ("Derived", "x")))
        self.assertEqual((one.inner_static("x"), Base.outer_static("x"), one.outer_static("x")), ("x", "x", "x"))

    def test_a_bound_tool_is_a_tool(self):
        bound = Base().greet
        self.assertIsInstance(bound, ToolSpec)
        self.assertEqual((bound.name, bound.__name__, bound.__doc__), ("greet", "greet", "Says it."))
        self.assertEqual(list(inspect.signature(bound).parameters), ["name"])
        one = Base()
        self.assertEqual(one.greet, one.greet)

    def test_a_bound_method_can_be_decorated(self):
        class Notes:
            def search(self, query: str, limit: int = 3):
                return query * limit

        spec = tool("Search")(Notes().search)
        self.assertEqual((spec.name, parameters(spec)), ("search", (["query", "limit"], ["query"])))
        self.assertEqual(spec("a"), "aaa")

    def test_parameters_by_hand_stay(self):
        self.assertEqual((Base.by_hand.parameters, Base().by_hand.parameters), ({"type": "object"}, {"type": "object"}))

    def test_a_tool_that_is_kept_in_a_class_is_no_method(self):
        self.assertIs(Holder.kept, alone)
        self.assertEqual(Holder().kept("x"), "x")

    def test_agents_take_methods_of_all_kinds(self):
        one = Base()
        tools = {"a": one.greet, "b": one.outer_class, "c": Base.outer_static, "d": Base.inner_class}
        specs = ReActAgent(tools)._specs
        self.assertEqual(
            {name: list(one.parameters["properties"]) for name, one in specs.items()}, dict.fromkeys("abcd", ["name"])
        )
        self.assertEqual(specs["b"].description, "Of the class")

    def test_self_of_a_function_is_a_parameter(self):
        @tool("x")
        def describe(self: str): ...

        self.assertEqual(parameters(describe)[0], ["self"])

    def test_an_abstract_method_can_be_a_tool(self):
        class Abstract(abc.ABC):
            @tool("x")
            @abc.abstractmethod
            def work(self, n: int): ...

        class Concrete(Abstract):
            @tool("x")
            def work(self, n: int):
                return n

        self.assertEqual(Concrete().work(2), 2)
        with self.assertRaisesRegex(TypeError, "abstract"):
            Abstract()


class Callables(unittest.TestCase):
    def test_partials_have_what_is_left(self):
        def search(kind: str, query: str, limit: int = 3, /, *, deep: bool = False):
            """Looks."""
            return kind, query, limit, deep

        spec = tool("x")(functools.partial(search, "notes", deep=True))
        self.assertEqual((spec.name, spec.__doc__), ("search", "Looks."))
        self.assertEqual(parameters(spec), (["query", "limit", "deep"], ["query"]))
        self.assertEqual(spec("q"), ("notes", "q", 3, True))

    def test_wrappers_have_what_they_wrap(self):
        def loud(fn):
            @functools.wraps(fn)
            def wrapper(*args, **kwargs):
                return fn(*args, **kwargs).upper()

            return wrapper

        @tool("x")
        @loud
        def say(text: str, times: "int" = 1) -> str:
            return text * times

        self.assertEqual(parameters(say), (["text", "times"], ["text"]))
        self.assertEqual((say("a"), say.output_schema), ("A", {"type": "string"}))

    def test_a_tool_can_be_decorated_again(self):
        @tool("outer", name="outer")
        @tool("inner")
        def work(n: int) -> int:
            return n

        self.assertEqual((work.name, work.fn.name, parameters(work), work(2)), ("outer", "work", (["n"], ["n"]), 2))

    def test_objects_that_are_called(self):
        class Search:
            """Searches."""

            def __call__(self, query: str, limit: "int" = 3) -> "list[str]":
                return [query] * limit

        spec = tool("x")(Search())
        self.assertEqual((spec.name, parameters(spec)), ("Search", (["query", "limit"], ["query"])))
        self.assertEqual((spec("a", 1), spec.output_schema["type"]), (["a"], "array"))

    def test_classes(self):
        class Point:
            def __init__(self, x: int, y: "int" = 0):
                self.sum = x + y

        spec = tool("x")(Point)
        self.assertEqual((spec.name, parameters(spec), spec(1, 2).sum), ("Point", (["x", "y"], ["x"]), 3))

    def test_lambdas_with_a_name(self):
        spec = tool("x", name="double")(lambda x, times=2: x * times)
        self.assertEqual((parameters(spec), spec(3), spec.__name__), ((["x", "times"], ["x"]), 6, "double"))

    def test_a_signature_that_a_decorator_gives(self):
        def without_first(fn):
            @functools.wraps(fn)
            def wrapper(*args, **kwargs):
                return fn("first", *args, **kwargs)

            signature = inspect.signature(fn)
            wrapper.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
            return wrapper

        @tool("x")
        @without_first
        def work(first: str, second: int):
            return first, second

        self.assertEqual((parameters(work), work(2)), ((["second"], ["second"]), ("first", 2)))

    def test_a_tool_of_a_tool_takes_what_that_one_takes(self):
        by_hand = {"type": "object", "properties": {"expr": {"type": "string"}}}
        direct = ToolSpec("direct", lambda expr: expr, "x", by_hand)
        inner = tool("x", parameters=by_hand)(alone)
        for spec, name in ((tool("outer")(direct), "direct"), (tool("outer", name="other")(inner), "other")):
            self.assertEqual((spec.name, spec.description, spec.parameters), (name, "outer", by_hand))
            self.assertEqual(spec("e"), "e")
        self.assertEqual(parameters(tool("outer")(alone)), (["name"], ["name"]))

    def test_a_class_method_below_its_decorator_can_be_listed(self):
        class Maker:
            @classmethod
            @tool("x")
            def make(kind, x: int):
                return kind.__name__, x

        (spec,) = tools_to_dict([Maker.make]).values()
        self.assertEqual((parameters(spec), spec(1)), ((["x"], ["x"]), ("Maker", 1)))
        self.assertEqual(tools_to_openai_schemas([Maker().make]), [spec.to_openai_schema()])

    def test_copies(self):
        twin = copy.deepcopy(alone)
        twin.parameters["properties"].clear()
        self.assertEqual((parameters(alone)[0], twin("x"), copy.copy(alone).name), (["name"], "x", "alone"))


class Async(unittest.TestCase):
    def test_async_functions_stay_async(self):
        @tool("x")
        async def fetch(url: str, tries: int = 1) -> str:
            return url * tries

        self.assertEqual((parameters(fetch), fetch.output_schema), ((["url", "tries"], ["url"]), {"type": "string"}))
        self.assertEqual(asyncio.run(fetch("a", 2)), "aa")
        self.assertTrue(inspect.iscoroutinefunction(fetch.fn))
        if sys.version_info >= (3, 12):
            self.assertTrue(inspect.iscoroutinefunction(fetch))
            self.assertFalse(inspect.iscoroutinefunction(alone))

    def test_async_methods(self):
        class Client:
            @tool("x")
            async def fetch(self, url: str):
                return url

            @tool("x")
            @classmethod
            async def make(cls, url: str):
                return cls, url

        self.assertEqual(parameters(Client().fetch)[0], ["url"])
        self.assertEqual(asyncio.run(Client().fetch("a")), "a")
        self.assertEqual(asyncio.run(Client.make("a")), (Client, "a"))


if __name__ == "__main__":
    unittest.main()
