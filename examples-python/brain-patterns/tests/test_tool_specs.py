"""The seed's rules about tools: what is declared, called and exported."""

import dataclasses
import inspect
import json
import unittest

import brain.patterns
import brain.patterns.tools
from brain.patterns import ReActAgent, ToolSpec, tool, tools_to_dict, tools_to_openai_schemas
from brain.providers import LocalEchoProvider

PAGES = {"local://handbook": "Tools work offline."}


@tool("Search local notes")
def search(query: str) -> str:
    """Looks it up."""
    return f"[results: {query}]"


@tool("Fetch the contents of a page")
def fetch_page(url: str, max_chars: int = 2000) -> str:
    return PAGES.get(url, "Not found")[:max_chars]


BY_HAND = {
    "type": "object",
    "properties": {"sql": {"type": "string", "description": "A SELECT"}, "limit": {"type": "integer", "default": 100}},
    "required": ["sql"],
}


@tool("Run a query", parameters=BY_HAND)
def run_query(sql: str, limit: int = 100) -> str:
    return f"{sql} limit {limit}"


@tool("Internal alias", name="my_tool")
def my_function(x: str) -> str:
    return x


class Declaring(unittest.TestCase):
    def test_a_decorated_function_is_a_tool_spec(self):
        self.assertIsInstance(search, ToolSpec)
        self.assertEqual((search.name, search.description), ("search", "Search local notes"))
        self.assertTrue(inspect.isfunction(search.fn))

    def test_everything_can_be_imported_from_both_modules(self):
        for name in ("ToolSpec", "tool", "tools_to_dict", "tools_to_openai_schemas"):
            self.assertIs(getattr(brain.patterns, name), getattr(brain.patterns.tools, name))

    def test_it_is_called_like_the_function_with_arguments_of_either_kind(self):
        self.assertEqual(fetch_page("local://handbook", max_chars=5), "Tools")
        self.assertEqual(fetch_page(max_chars=3, url="none"), "Not")

    def test_its_arguments_pass_through_unchecked(self):
        marker = object()
        self.assertIs(tool("Gives it back")(lambda_named("same", lambda x: x))(marker), marker)
        with self.assertRaises(TypeError):
            search()

    def test_parameters_by_hand_are_kept_as_they_are(self):
        self.assertIs(run_query.parameters, BY_HAND)
        self.assertEqual(run_query("select 1"), "select 1 limit 100")

    def test_empty_parameters_by_hand_are_kept(self):
        self.assertEqual(tool("Any", parameters={})(search.fn).parameters, {})

    def test_name_and_docstring_are_for_introspection(self):
        self.assertEqual((search.__name__, search.__doc__), ("search", "Looks it up."))
        self.assertEqual((my_function.name, my_function.__name__, my_function.__doc__), ("my_tool", "my_tool", None))
        self.assertEqual(list(inspect.signature(fetch_page).parameters), ["url", "max_chars"])

    def test_the_decorator_needs_a_description(self):
        with self.assertRaisesRegex(TypeError, r'Cannot make a tool of "search": its description must be a text'):
            tool(search.fn)

    def test_the_decorator_takes_name_and_parameters_by_keyword_only(self):
        kinds = {one.name: one.kind.name for one in inspect.signature(tool).parameters.values()}
        self.assertEqual(
            kinds, {"description": "POSITIONAL_OR_KEYWORD", "name": "KEYWORD_ONLY", "parameters": "KEYWORD_ONLY"}
        )
        with self.assertRaisesRegex(TypeError, "parameters must be a dict, not list"):
            tool("x", parameters=[])


def lambda_named(name, fn):
    fn.__name__ = name
    return fn


class Constructing(unittest.TestCase):
    def test_has_four_fields_in_order(self):
        self.assertEqual(
            [one.name for one in dataclasses.fields(ToolSpec)], ["name", "fn", "description", "parameters"]
        )
        spec = ToolSpec("double", lambda x: 2 * x, "Doubles", {"type": "object"})
        self.assertEqual(
            (spec.name, spec.fn(2), spec.description, spec.parameters), ("double", 4, "Doubles", {"type": "object"})
        )

    def test_parameters_are_a_fresh_dict_by_default(self):
        one, other = (ToolSpec(name=name, fn=print, description="") for name in ("a", "b"))
        self.assertEqual(one.parameters, {})
        one.parameters["type"] = "object"
        self.assertEqual(other.parameters, {})

    def test_it_can_be_changed(self):
        spec = ToolSpec("a", print, "")
        spec.name, spec.description = "b", "changed"
        self.assertEqual(spec.to_dict(), {"name": "b", "description": "changed", "parameters": {}})

    def test_it_is_callable(self):
        calculator = ToolSpec(
            name="calculator", fn=lambda expr: str(len(expr)), description="Measure", parameters=BY_HAND
        )
        self.assertEqual(calculator("2 + 2"), "5")

    def test_the_return_type_is_no_field(self):
        @tool("Counts")
        def count(text: str) -> int:
            return len(text)

        self.assertEqual(count.output_schema, {"type": "integer"})
        self.assertNotIn("output_schema", dataclasses.asdict(count))
        self.assertIsNone(tool("x")(lambda_named("bare", lambda: None)).output_schema)

    def test_what_is_no_field_is_missing(self):
        with self.assertRaisesRegex(AttributeError, "'ToolSpec' object has no attribute 'returns'"):
            search.returns


class Exporting(unittest.TestCase):
    def test_openai_schema(self):
        self.assertEqual(
            search.to_openai_schema(),
            {
                "type": "function",
                "function": {
                    "name": "search",
                    "description": "Search local notes",
                    "parameters": {
                        "type": "object",
                        "properties": {"query": {"type": "string"}},
                        "required": ["query"],
                    },
                },
            },
        )

    def test_anthropic_schema(self):
        expected = {"name": "my_tool", "description": "Internal alias", "input_schema": my_function.parameters}
        self.assertEqual(my_function.to_anthropic_schema(), expected)

    def test_plain_dict_is_json(self):
        self.assertEqual(
            json.loads(json.dumps(run_query.to_dict())),
            {"name": "run_query", "description": "Run a query", "parameters": BY_HAND},
        )

    def test_bulk_dict_holds_the_specs_themselves(self):
        tools = tools_to_dict([search, fetch_page, my_function])
        self.assertEqual(list(tools), ["search", "fetch_page", "my_tool"])
        self.assertIs(tools["my_tool"], my_function)
        self.assertEqual(tools_to_dict([]), {})

    def test_bulk_schemas_keep_the_order(self):
        schemas = tools_to_openai_schemas([run_query, search])
        self.assertEqual([one["function"]["name"] for one in schemas], ["run_query", "search"])
        self.assertEqual({one["type"] for one in schemas}, {"function"})

    def test_an_agent_takes_them_beside_plain_functions(self):
        agent = ReActAgent(tools={**tools_to_dict([search]), "raw": print}, provider=LocalEchoProvider())
        self.assertEqual(agent.run("Summarize the notes").answer, "Summarize the notes")


class Names(unittest.TestCase):
    GOOD = ("a" * 64, "1abc", "_x", "A-b", "-")
    BAD = ("a b", "a.b", "a/b", "é", "😀", "a\n", "a" * 65, "<lambda>")

    def test_names_that_providers_take_are_taken(self):
        for name in self.GOOD:
            spec = tool("x", name=name)(search.fn)
            self.assertEqual(
                (spec.to_openai_schema()["function"]["name"], spec.to_anthropic_schema()["name"]), (name, name)
            )

    def test_other_names_are_refused_where_they_are_declared(self):
        for name in self.BAD:
            for declare in (
                lambda name=name: tool("x", name=name)(search.fn),
                lambda name=name: ToolSpec(name, print, "x"),
            ):
                with self.assertRaisesRegex(ValueError, r'1 to 64 letters, digits, "_" or "-"'):
                    declare()

    def test_an_empty_name_means_that_of_the_function(self):
        self.assertEqual(tool("x", name="")(search.fn).name, "search")
        with self.assertRaisesRegex(ValueError, "Cannot name a tool ''"):
            ToolSpec("", print, "x")

    def test_a_lambda_needs_a_name(self):
        with self.assertRaisesRegex(ValueError, "'<lambda>'.*name="):
            tool("x")(lambda: None)

    def test_two_tools_of_one_name_are_refused(self):
        twin = tool("another", name="search")(my_function.fn)
        for bulk in (tools_to_dict, tools_to_openai_schemas):
            with self.assertRaisesRegex(ValueError, 'Cannot offer two tools named "search"'):
                bulk([search, twin])

    def test_long_descriptions_are_sent_whole(self):
        long = "x" * 5000
        self.assertEqual(tool(long)(search.fn).to_openai_schema()["function"]["description"], long)
        self.assertEqual(tool("")(search.fn).to_anthropic_schema()["description"], "")


if __name__ == "__main__":
    unittest.main()
