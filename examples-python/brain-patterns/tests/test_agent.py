"""The agent, offline."""

import asyncio
import sys
import unittest

from brain.patterns import Context, ReActAgent, ToolSpec, current_context, tool, tools_to_dict, use_context
from brain.providers import Answer, LocalEchoProvider, ToolCall


class Scripted:
    """Answers one after another, and keeps what it was asked. Its answers are its own: nothing is replaced by it."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def complete(self, messages, tools):
        self.asked.append((list(messages), list(tools)))
        return self.answers.pop(0)


@tool("Adds")
def add(a: int, b: int = 1) -> int:
    return a + b


@tool("Sleeps")
async def sleepy(text: str) -> str:
    await asyncio.sleep(0)
    return text


def raw(text, loud=False):
    """Says it.

    Loudly, if it must.
    """
    return text.upper() if loud else text


class Maker:
    """Makes it."""

    def __call__(self, what: str):
        return what


@tool("Fails")
def fail():
    raise KeyError("deliberate")


@tool("Emits")
def emits(what: str, context: Context):
    context.emit("said", what)
    current_context().emit("said", "again")
    return {"said": [what]}


@tool("Position")
def by_position(a, b=1, /):
    return [a, b]


TOOLS = {**tools_to_dict([add, sleepy, fail, emits, by_position]), "raw": raw}


class Agent(unittest.TestCase):
    def run_calls(self, *calls):
        provider = Scripted(
            Answer("thinking", tuple(ToolCall(str(i), *one) for i, one in enumerate(calls))), Answer("done")
        )
        result = ReActAgent(TOOLS, provider).run("task")
        self.assertEqual((result.answer, result.completed, len(result.steps)), ("done", True, 2))
        self.assertEqual([one.call_id for one in result.steps[0].results], [str(i) for i in range(len(calls))])
        self.assertEqual(provider.asked[1][0][-1].results, result.steps[0].results)
        return [(one.content, one.is_error) for one in result.steps[0].results]

    def test_echo_answers_the_task_in_one_step_and_calls_nothing(self):
        for agent in (
            ReActAgent(tools={"fail": fail}, provider=LocalEchoProvider()),
            ReActAgent(TOOLS),
            ReActAgent({}),
        ):
            result = agent.run("Summarize the notes")
            self.assertEqual((result.answer, len(result.steps), result.steps[0].calls), ("Summarize the notes", 1, ()))

    def test_descriptions_reach_the_provider(self):
        provider = Scripted(Answer("done"))
        by_hand = ToolSpec("hand", lambda: 1, "")
        ReActAgent({"plus": add, "raw": raw, "print": print, "made": Maker(), "hand": by_hand}, provider).run("task")
        offered = {one.name: one for one in provider.asked[0][1]}
        self.assertEqual(offered["plus"].description, "Adds")
        self.assertEqual(offered["raw"].description, "Says it.\n\nLoudly, if it must.")
        self.assertEqual(offered["raw"].parameters["required"], ["text"])
        self.assertEqual((offered["made"].description, offered["hand"].description), ("Makes it.", ""))
        self.assertIn("print", offered["print"].description.lower() + "print")

    def test_results_come_in_the_order_of_the_calls(self):
        calls = [
            ("add", {"a": 2}),
            ("raw", {"text": "hi", "loud": True}),
            ("sleepy", {"text": "zzz"}),
            ("by_position", {"a": 1}),
        ]
        self.assertEqual(self.run_calls(*calls), [("3", False), ("HI", False), ("zzz", False), ("[1,1]", False)])

    def test_positional_only_parameters_are_given_by_name_whatever_holds_the_function(self):
        def plain(a, b=1, /):
            return [a, b]

        held = {
            "plain": plain,
            "other": by_position,
            "direct": ToolSpec("direct", plain, "Position"),
            "renamed": ToolSpec("first", plain, "Position"),
            "built_in": len,
        }
        calls = [(name, {"a": 5}) for name in held if name != "built_in"]
        provider = Scripted(
            Answer("", tuple(ToolCall(name, name, given) for name, given in [*calls, ("built_in", {"obj": "abc"})])),
            Answer("done"),
        )
        results = ReActAgent(held, provider).run("task").steps[0].results
        self.assertEqual([one.content for one in results], ["[5,1]"] * 4 + ["3"])

    def test_a_failure_is_told_to_the_model_and_stops_nothing(self):
        results = self.run_calls(
            ("fail", {}), ("none", {}), ("add", {"c": 1}), ("add", {}, "they are no JSON"), ("add", {"a": 1})
        )
        self.assertEqual(results[0], ("KeyError: 'deliberate'", True))
        self.assertRegex(results[1][0], 'There is no tool "none". Known ones: add, sleepy')
        self.assertRegex(results[2][0], "TypeError: .*unexpected keyword argument 'c'")
        self.assertEqual(results[3], ('Cannot read the arguments for "add": they are no JSON', True))
        self.assertEqual(results[4], ("2", False))

    def test_a_tool_that_leaves_does_not_take_the_agent_along(self):
        provider = Scripted(Answer("", (ToolCall("c", "leave", {"code": 3}),)), Answer("done"))
        result = ReActAgent({"leave": sys.exit}, provider).run("task")
        self.assertEqual(result.answer, "done")
        provider = Scripted(Answer("", (ToolCall("c", "leave", {}),)), Answer("done"))
        result = ReActAgent({"leave": lambda: sys.exit("no")}, provider).run("task")
        self.assertEqual(result.steps[0].results[0].content, "SystemExit: no")

    def test_whatever_can_be_awaited_is(self):
        class Later:
            def __await__(self):
                yield from asyncio.sleep(0).__await__()
                return "later"

        provider = Scripted(Answer("", (ToolCall("c", "later", {}),)), Answer("done"))
        result = ReActAgent({"later": Later}, provider).run("task")
        self.assertEqual(result.steps[0].results[0].content, "later")

    def test_a_context_is_given_to_who_asks_for_one(self):
        with use_context(Context()) as context:
            self.assertEqual(self.run_calls(("emits", {"what": "hi"})), [('{"said":["hi"]}', False)])
        self.assertEqual([one.arguments for one in context.records], [("said", "hi"), ("said", "again")])

    def test_an_async_tool_runs_where_the_agent_itself_runs_in_a_loop(self):
        async def outer():
            return self.run_calls(("sleepy", {"text": "zzz"}))

        self.assertEqual(asyncio.run(outer()), [("zzz", False)])

    def test_it_stops_after_its_last_step(self):
        provider = Scripted(*(Answer(f"step {i}", (ToolCall("c", "add", {"a": i}),)) for i in range(9)))
        result = ReActAgent(TOOLS, provider, max_steps=3).run("task")
        self.assertEqual((result.answer, len(result.steps), result.completed), ("step 2", 3, False))

    def test_what_is_no_tool_is_refused(self):
        with self.assertRaisesRegex(TypeError, "tools must be a dict of callables by name"):
            ReActAgent([add])
        with self.assertRaisesRegex(TypeError, 'Cannot take "x" as a tool: a int cannot be called'):
            ReActAgent({"x": 5})
        with self.assertRaisesRegex(ValueError, "Cannot name a tool 'a b'"):
            ReActAgent({"a b": add})
        with self.assertRaisesRegex(ValueError, "max_steps must be at least 1"):
            ReActAgent({}, max_steps=0)


if __name__ == "__main__":
    unittest.main()
