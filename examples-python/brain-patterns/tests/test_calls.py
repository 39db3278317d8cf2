"""What a component does with a call, in this interpreter: with the code of components and a host that keeps records."""

import asyncio
import dataclasses
import enum
import json
import random
import sys
import unittest
from typing import Literal, NamedTuple, Optional, TypedDict, Union

from brain.component.metadata import metadata_of
from brain.component.run_call import Invocation, ServedTool
from brain.patterns import Context, ReActAgent, ToolError, WithContent, current_context, tool, workspace_path
from brain.providers import Answer, ToolCall


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    color: Color = Color.RED


class Row(TypedDict):
    at: Point


class Pair(NamedTuple):
    first: int
    second: "tuple[int, ...]" = ()


@dataclasses.dataclass
class Options:
    depth: int = 1


def call(spec, arguments=None, options=None, deadline=0):
    """Makes a call. Answers how it ended, and what the host was told."""
    context = Context()
    invocation = Invocation(json.dumps(arguments or {}), json.dumps(options), deadline)
    try:
        ServedTool(spec).run(invocation, context._host)
        end = None
    except ToolError as error:
        end = (error.code, error.message)
    return end, [(one.service, *one.arguments) for one in context.records]


def value_of(spec, arguments=None, options=None):
    end, records = call(spec, arguments, options)
    assert end is None, end
    assert records[-1][0] == "finish", records
    return records[-1][1]["value"]


class Calling:
    """Wants one call, and is done."""

    def __init__(self, name, arguments):
        self.answers = [Answer("", (ToolCall("c", name, arguments),)), Answer("done")]

    def complete(self, messages, tools):
        return self.answers.pop(0)


class Arguments(unittest.TestCase):
    def test_are_what_the_hints_promise(self):
        @tool("x")
        def take(
            point: Point,
            row: Row,
            pair: Pair,
            colors: "list[Color]",
            counts: "dict[int, Color]",
            either: "Union[int, Point]",
            ids: "set[int]",
            maybe: "Optional[Color]" = None,
            mode: Literal["r"] = "r",
            number: float = 1,
        ):
            kinds = [
                type(one).__name__ for one in (point, point.color, row["at"], pair, pair.second, either, ids, maybe)
            ]
            return [kinds, colors[0] is Color.RED, counts[1] is Color.RED, number]

        given = {
            "point": {"x": 1, "color": "red"},
            "row": {"at": {"x": 1}},
            "pair": [1, [2]],
            "colors": ["red"],
            "counts": {"1": "red"},
            "either": {"x": 1},
            "ids": [1, 2],
            "maybe": "red",
            "number": 2,
        }
        kinds = ["Point", "Color", "Point", "Pair", "tuple", "Point", "set", "Color"]
        self.assertEqual(value_of(take, given), [kinds, True, True, 2])

    def test_are_checked_before_the_function_runs(self):
        ran = []

        @tool("x")
        def take(n: int, point: Optional[Point] = None, names: "list[str]" = []):
            ran.append(n)

        faults = {
            '{"n": "1"}': '"n" must be an integer, not a string',
            '{"n": true}': '"n" must be an integer, not a boolean',
            '{"n": 1.5}': '"n" must be an integer, not a number',
            "{}": '"n" is missing',
            '{"n": 1, "names": [1]}': '"names[0]" must be a string, not an integer',
            '{"n": 1, "m": 2}': '"m" is none of its parameters',
            '{"n": 1, "point": {"x": 1, "y": 2}}': '"point" cannot be used: ',
            "[]": "the input must be an object",
        }
        for text, fault in faults.items():
            end, records = call(take, json.loads(text)) if text != "[]" else call_text(take, text)
            self.assertEqual((end[0], records), ("invalid_input", []), text)
            self.assertTrue(end[1].startswith(f'Cannot call "take": {fault}'), end[1])
        self.assertEqual(ran, [])
        self.assertEqual(value_of(take, {"n": 1e3, "point": None}), None)
        self.assertEqual((ran, type(ran[0])), ([1000], int))

    def test_of_all_kinds_are_passed(self):
        @tool("x")
        def take(a, /, b, *args, c, **more):
            return [a, b, args, c, more]

        self.assertEqual(value_of(take, {"a": "1", "b": "2", "c": "3", "d": 4}), ["1", "2", [], "3", {"d": 4}])

    def test_by_hand_are_taken_as_the_schema_says(self):
        @tool("x", parameters={"type": "object", "properties": {"n": {"type": ["integer", "string"], "maximum": 5}}})
        def take(n: int = 0):
            return n

        self.assertEqual(value_of(take, {"n": "text"}), "text")
        self.assertEqual(call(take, {"n": 6})[0][1], 'Cannot call "take": "n" must be at most 5')

    def test_names_of_members_are_what_the_hint_says(self):
        @tool("x")
        def take(colors: "dict[Color, int]", modes: "Optional[dict[Literal['r', 'w'], int]]" = None):
            return [one.name for one in colors], modes

        self.assertEqual(value_of(take, {"colors": {"red": 1}, "modes": {"r": 1}}), [["RED"], {"r": 1}])
        for given in ({"colors": {"blue": 1}}, {"colors": {}, "modes": {"x": 1}}):
            end, _ = call(take, given)
            self.assertEqual(end[0], "invalid_input")
            self.assertRegex(end[1], "'(blue|x)' is no name of a member")

    def test_of_methods(self):
        class Counter:
            def __init__(self):
                self.start = 5

            @tool("x")
            def count(self, by: int):
                return self.start + by

        self.assertEqual(value_of(Counter().count, {"by": 2}), 7)


def call_text(spec, text):
    try:
        ServedTool(spec).run(Invocation(text, "", 0), Context()._host)
    except ToolError as error:
        return (error.code, error.message), []
    raise AssertionError("it was taken")


class Ends(unittest.TestCase):
    def test_results_are_json(self):
        @tool("x")
        def give():
            return [Point(1), Pair(1), {Color.RED: {2, 1}}, WithContent]

        @tool("x")
        def good():
            return [Point(1), Pair(1), {Color.RED: {2, 1}, 3: None}, "\ud800"]

        self.assertEqual(call(give)[0][0], "invalid_output")
        self.assertEqual(value_of(good), [{"x": 1, "color": "red"}, [1, []], {"red": [1, 2], "3": None}, "\ud800"])

    def test_what_json_does_not_have_is_an_error(self):
        loop = []
        loop.append(loop)
        for value, said in (
            (float("nan"), "JSON has no nan"),
            (object(), "a object has no form"),
            (loop, "holds itself"),
        ):
            end, _ = call(named(value))
            self.assertEqual(end[0], "invalid_output")
            self.assertRegex(end[1], said)

    def test_an_exception_is_a_tool_error_with_its_traceback_in_the_log(self):
        @tool("x")
        def fail():
            raise KeyError("deliberate")

        end, records = call(fail)
        self.assertEqual(end, ("tool_error", "KeyError: 'deliberate'"))
        self.assertEqual(records[0][0], "telemetry")
        self.assertRegex(records[0][1]["traceback"], r'(?s)test_calls\.py", line \d+, in fail.*KeyError')

    def test_leaving_is_an_error_too(self):
        self.assertEqual(call(tool("x", name="leave")(lambda: sys.exit(3)))[0], ("tool_error", "SystemExit: 3"))

    def test_a_failure_on_purpose_keeps_its_code(self):
        @tool("x")
        def refuse():
            raise ToolError("no_luck", "Cannot do it")

        self.assertEqual(call(refuse), (("no_luck", "Cannot do it"), []))

    def test_long_messages_are_cut(self):
        @tool("x")
        def fail():
            raise ValueError("x" * 10_000)

        end, records = call(fail)
        self.assertEqual(len(end[1]), 4096)
        self.assertLessEqual(len(records[0][1]["traceback"]), 32 * 1024)

    def test_async_functions_run_to_their_end(self):
        @tool("x")
        async def both(n: int):
            async def one(m):
                await asyncio.sleep(0.001)
                return m

            return await asyncio.gather(one(n), one(n + 1))

        self.assertEqual(value_of(both, {"n": 1}), [1, 2])

    def test_generators_run_to_their_end_too(self):
        @tool("x")
        def count(to: int):
            yield from range(to)

        @tool("x")
        async def later(to: int):
            for one in range(to):
                await asyncio.sleep(0)
                yield one

        for spec in (count, later):
            self.assertEqual(value_of(spec, {"to": 3}), [0, 1, 2])
            said = ReActAgent({"count": spec}, Calling("count", {"to": 3})).run("task").steps[0].results
            self.assertEqual([(one.content, one.is_error) for one in said], [("[0,1,2]", False)])
        self.assertEqual(list(count(2)), [0, 1])

    def test_waiting_for_nothing_is_an_error(self):
        @tool("x")
        async def forever():
            await asyncio.get_running_loop().create_future()

        end, _ = call(forever)
        self.assertEqual(end[0], "tool_error")
        self.assertRegex(end[1], "waits for what can never happen")

    def test_random_numbers_are_others_in_each_call(self):
        random.seed(1)
        frozen = random.getstate()
        numbers = []
        for _ in range(2):
            random.setstate(frozen)
            numbers.append(value_of(tool("x", name="roll")(lambda: random.getrandbits(64))))
        self.assertNotEqual(*numbers)


def named(value):
    return tool("x", name="give")(lambda: value)


class Contexts(unittest.TestCase):
    def test_a_context_is_injected_and_is_the_current_one(self):
        @tool("x")
        def take(q: str, context: Context, again: "Optional[Context]" = None):
            assert context is again is current_context()
            context.emit("seen", {"q": q})
            context.telemetry("note")
            return context.deadline

        end, records = call(take, {"q": "hi"}, deadline=1500)
        self.assertIsNone(end)
        expected = [("emit", "seen", {"q": "hi"}), ("telemetry", "note"), ("finish", {"status": "ok", "value": 1.5})]
        self.assertEqual(records, expected)
        self.assertIsNone(value_of(take, {"q": "hi"}))

    def test_nobody_can_give_it(self):
        @tool("x")
        def take(context: Context): ...

        self.assertEqual(call(take, {"context": 1})[0][0], "invalid_input")

    def test_options_are_checked_and_typed(self):
        @tool("x")
        def take(context: Context[Options]):
            return context.options.depth

        @tool("x")
        def bare(context: Context):
            return context.options

        self.assertEqual([value_of(take, {}, one) for one in (None, {}, {"depth": 3})], [1, 1, 3])
        self.assertEqual(call(take, {}, {"depth": "3"})[0][0], "invalid_options")
        self.assertEqual((value_of(bare, {}, {"any": 1}), value_of(bare)), ({"any": 1}, {}))
        self.assertEqual(
            metadata_of(take)["options_schema"]["properties"], {"depth": {"type": "integer", "default": 1}}
        )
        self.assertNotIn("options_schema", metadata_of(bare))

    def test_results_of_the_tools_own(self):
        @tool("x")
        def several(context: Context):
            context.emit_result(1)
            context.returned(WithContent(2, "two"))

        @tool("x")
        def early(context: Context):
            context.finish("done")
            return "ignored"

        self.assertEqual(
            call(several)[1],
            [
                ("emit_result", {"status": "ok", "value": 1}),
                ("returned", {"status": "ok", "value": 2, "content": "two"}),
                ("finish", None),
            ],
        )
        self.assertEqual(call(early)[1], [("finish", {"status": "ok", "value": "done"})])

    def test_a_model_outside_of_a_session_is_a_refusal(self):
        end, records = call(tool("x", name="ask")(lambda: current_context().model("hi", system="be brief")))
        self.assertEqual(end[0], "model_call_limit")
        self.assertEqual(records[0][1]["system"], "be brief")

    def test_paths_mean_the_workspace(self):
        self.assertEqual([str(workspace_path(one)) for one in ("a/b", "/etc")], ["/workspace/a/b", "/etc"])


class Metadata(unittest.TestCase):
    def test_says_what_brain_wants_to_know(self):
        @tool("Adds")
        def add(a: int, b: int = 1) -> int: ...

        self.assertEqual(
            metadata_of(add),
            {
                "name": "add",
                "description": "Adds",
                "input_schema": add.parameters,
                "output_schema": {"type": "integer"},
            },
        )

    def test_what_brain_would_refuse_is_refused_here(self):
        for description in ("", "x" * 8193):
            with self.assertRaisesRegex(ValueError, "description must have 1 to 8192 characters"):
                metadata_of(tool(description, name="t")(lambda: None))
        large = {"type": "object", "description": "x" * 70_000}
        with self.assertRaisesRegex(ValueError, "have 700.. bytes, and 65536 are allowed"):
            metadata_of(tool("x", name="t", parameters=large)(lambda: None))


if __name__ == "__main__":
    unittest.main()
