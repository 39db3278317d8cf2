"""Providers over HTTP, against servers that say what those of the providers say."""

import http.server
import json
import threading
import unittest
from typing import Optional

from brain.patterns import ReActAgent, ToolSpec, tool
from brain.providers import AnthropicProvider, Message, OpenAICompatibleProvider, ProviderError


@tool("Adds")
def add(a: int, b: int = 1) -> int:
    return a + b


class Server:
    """Answers with what it is given, one after another: a value, or a status with a text or headers."""

    def __init__(self, *answers):
        self.requests = []
        outer, left = self, list(answers)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append((self.path, dict(self.headers), json.loads(body)))
                status, headers, text = left.pop(0)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if "content-length" not in headers:
                    self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def ok(value):
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()


class OpenAI(unittest.TestCase):
    def test_a_run(self):
        calls = [
            {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}},
            {"id": "c2", "type": "function", "function": {"name": "add", "arguments": "{"}},
            {"id": "c3", "type": "function", "function": {"name": "add", "arguments": " "}},
        ]
        first = ok({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]})
        second = ok({"choices": [{"message": {"role": "assistant", "content": "3"}}]})
        with Server(first, second) as server:
            provider = OpenAICompatibleProvider(
                "m", api_key="key", base_url=f"{server.url}/v1/", more={"temperature": 0}
            )
            result = ReActAgent({"add": add}, provider).run("What is 2 + 1?")
        self.assertEqual(result.answer, "3")
        path, headers, body = server.requests[0]
        self.assertEqual(
            (path, headers["Authorization"], body["model"], body["temperature"]),
            ("/v1/chat/completions", "Bearer key", "m", 0),
        )
        self.assertEqual(body["tools"], [add.to_openai_schema()])
        messages = server.requests[1][2]["messages"]
        self.assertEqual([one["role"] for one in messages], ["user", "assistant", "tool", "tool", "tool"])
        self.assertEqual([one["tool_call_id"] for one in messages[2:]], ["c1", "c2", "c3"])
        self.assertEqual(messages[2]["content"], "3")
        self.assertRegex(messages[3]["content"], "they are no JSON")
        self.assertRegex(messages[4]["content"], "missing 1 required positional argument: 'a'")

    def answered(self, **message):
        with Server(ok({"choices": [{"message": message}]})) as server:
            return OpenAICompatibleProvider("m", base_url=server.url).complete([Message("user", "hi")], [])

    def test_answers_of_servers_that_only_resemble_it(self):
        parts = [{"type": "text", "text": "a"}, {"type": "audio"}, {"type": "text", "text": "b"}]
        self.assertEqual(self.answered(content=parts).text, "ab")
        self.assertEqual(self.answered(content=None, refusal="I will not").text, "I will not")
        without_id = {"function": {"name": "add", "arguments": {"a": 2}}}
        one, other = self.answered(tool_calls=[without_id, {**without_id, "id": ""}]).calls
        self.assertEqual((one.name, one.arguments, one.fault), ("add", {"a": 2}, None))
        self.assertTrue(one.id and other.id and one.id != other.id)

    def test_arguments_that_are_no_json_object_are_a_fault_of_the_call(self):
        for text in ("{", "[1]", '"x"', "3", '{"a": NaN}', '{"a": 1e999}', "[" * 100_000):
            (call,) = self.answered(tool_calls=[{"id": "c", "function": {"name": "add", "arguments": text}}]).calls
            self.assertRegex(call.fault, "^they are no JSON")
            self.assertEqual(call.arguments, {})

    def test_without_tools_and_key_neither_is_sent(self):
        with Server(ok({"choices": [{"message": {"content": "hi"}}]})) as server:
            self.assertEqual(ReActAgent({}, OpenAICompatibleProvider("m", base_url=server.url)).run("hi").answer, "hi")
        self.assertNotIn("Authorization", server.requests[0][1])
        self.assertNotIn("tools", server.requests[0][2])


class Anthropic(unittest.TestCase):
    def test_a_run(self):
        use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 2}}
        bad = {"type": "tool_use", "id": "t2", "name": "nothing", "input": {}}
        first, second = ok({"content": [use, bad]}), ok({"content": [{"type": "text", "text": "3"}]})
        with Server(first, second) as server:
            result = ReActAgent({"add": add}, AnthropicProvider("m", api_key="key", base_url=server.url)).run("2 + 1?")
        self.assertEqual(result.answer, "3")
        path, headers, body = server.requests[0]
        self.assertEqual((path, headers["X-Api-Key"], body["max_tokens"]), ("/v1/messages", "key", 4096))
        self.assertEqual(body["tools"], [add.to_anthropic_schema()])
        messages = server.requests[1][2]["messages"]
        self.assertEqual([one["role"] for one in messages], ["user", "assistant", "user"])
        self.assertEqual(messages[1]["content"], [use, bad])
        results = messages[2]["content"]
        self.assertEqual([(one["tool_use_id"], one["is_error"]) for one in results], [("t1", False), ("t2", True)])

    def answered(self, **answer):
        with Server(ok(answer)) as server:
            provider = AnthropicProvider("m", api_key="key", base_url=server.url)
            return provider.complete([Message("user", "hi")], [])

    def test_arguments_that_are_no_object_are_a_fault_of_the_call(self):
        use = {"type": "tool_use", "id": "t1", "name": "add"}
        for given in ("x", [1], 3, False):
            (call,) = self.answered(content=[{**use, "input": given}]).calls
            self.assertEqual((call.arguments, call.fault), ({}, "they are no JSON object"))
        (call,) = self.answered(content=[{**use, "input": None}]).calls
        self.assertEqual((call.arguments, call.fault), ({}, None))

    def test_a_call_that_was_cut_off_is_not_made(self):
        use = {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}
        calls = self.answered(content=[use, {**use, "id": "t2"}], stop_reason="max_tokens").calls
        self.assertEqual([one.fault for one in calls], [None, "the answer was cut off at max_tokens"])
        (call,) = self.answered(content=[use], stop_reason="tool_use").calls
        self.assertIsNone(call.fault)

    def test_other_blocks_are_no_text(self):
        blocks = [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "a"}, {"type": "server_tool_use"}]
        self.assertEqual(self.answered(content=blocks).text, "a")


class Schemas(unittest.TestCase):
    def test_what_is_sent_is_spelled_out_as_providers_want_it(self):
        @tool("x")
        def hinted(tags: list, more: list[list] = [], maybe: Optional[list] = None): ...

        by_hand = {
            "properties": {"a": True, "b": {"type": ["array", "null"], "items": False}},
            "additionalProperties": False,
        }
        tools = [hinted, ToolSpec("bare", hinted, "x"), ToolSpec("hand", hinted, "x", by_hand)]
        anything = {"type": "array", "items": {}}
        sent = [
            {
                "type": "object",
                "properties": {
                    "tags": anything,
                    "more": {"type": "array", "items": anything, "default": []},
                    "maybe": {"anyOf": [anything, {"type": "null"}], "default": None},
                },
                "required": ["tags"],
            },
            {"type": "object", "properties": {}},
            {
                "type": "object",
                "properties": {"a": {}, "b": {"type": ["array", "null"], "items": {"not": {}}}},
                "additionalProperties": False,
            },
        ]
        openai, anthropic = ok({"choices": [{"message": {"content": "hi"}}]}), ok({"content": []})
        with Server(openai, anthropic) as server:
            OpenAICompatibleProvider("m", base_url=server.url).complete([], tools)
            AnthropicProvider("m", api_key="k", base_url=server.url).complete([], tools)
        self.assertEqual([one["function"]["parameters"] for one in server.requests[0][2]["tools"]], sent)
        self.assertEqual([one["input_schema"] for one in server.requests[1][2]["tools"]], sent)
        self.assertEqual(hinted.to_openai_schema()["function"]["parameters"]["properties"]["tags"], {"type": "array"})
        self.assertEqual(by_hand["properties"]["a"], True)


class Failures(unittest.TestCase):
    def refused(self, answer):
        with Server(answer) as server, self.assertRaises(ProviderError) as raised:
            ReActAgent({}, OpenAICompatibleProvider("m", base_url=server.url, api_key="secret-key")).run("hi")
        self.assertEqual(len(server.requests), 1)
        self.assertNotIn("secret-key", str(raised.exception))
        return raised.exception

    def test_a_refusal_is_told_with_its_status(self):
        error = self.refused((429, {}, b"slow down"))
        self.assertRegex(str(error), r'^Cannot ask "http://.*": it answered 429: slow down$')
        self.assertEqual(error.status, 429)

    def test_redirects_are_not_followed(self):
        self.assertEqual(self.refused((302, {"location": "http://127.0.0.1:9/"}, b"")).status, 302)

    def test_what_is_no_answer(self):
        self.assertRegex(str(self.refused((200, {}, b"<html>"))), "it is no JSON")
        for value in ({}, {"choices": []}, {"choices": [{"message": None}]}, [], None):
            self.assertRegex(str(self.refused(ok(value))), "^Cannot read the answer of")

    def test_a_failure_that_is_told_with_the_status_200_is_shown(self):
        self.assertRegex(str(self.refused(ok({"error": {"message": "out of credits"}}))), "out of credits")
        self.assertLess(len(str(self.refused(ok({"x": "long" * 10_000})))), 1000)

    def test_answers_that_are_not_strict_json(self):
        for text in (b"NaN", b'{"choices": 1e999}', b"[" * 100_000, b"\xff"):
            self.assertRegex(str(self.refused((200, {}, text))), "^Cannot read the answer of .*it is no JSON")

    def test_calls_without_a_name(self):
        calls = [{"id": "c", "function": {"name": None, "arguments": "{}"}}]
        self.assertRegex(str(self.refused(ok({"choices": [{"message": {"tool_calls": calls}}]}))), "has no name")

    def test_answers_that_end_early(self):
        self.assertRegex(str(self.refused((200, {"content-length": "100"}, b"{}"))), "ended 98 bytes too early")

    def test_what_http_cannot_send_does_not_show_the_key(self):
        for key, path in (("secret\n", ""), ("secret\N{GRINNING FACE}", ""), ("secret", "/\xe9")):
            with self.assertRaisesRegex(ProviderError, "^Cannot ask .*cannot send") as raised:
                OpenAICompatibleProvider("m", base_url=f"http://127.0.0.1:9{path}", api_key=key).complete([], [])
            self.assertNotIn("secret", str(raised.exception))
            self.assertTrue(raised.exception.__suppress_context__)

    def test_nobody_there(self):
        with Server() as server:
            url = server.url
        with self.assertRaisesRegex(ProviderError, "Cannot ask .*refused"):
            OpenAICompatibleProvider("m", base_url=url).complete([], [])
        for url in ("file:///etc", "localhost:8080/v1", ""):
            with self.assertRaisesRegex(ProviderError, "only http and https"):
                OpenAICompatibleProvider("m", base_url=url).complete([], [])


if __name__ == "__main__":
    unittest.main()
