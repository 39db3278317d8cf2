"""Providers over HTTP, against servers that say what those of the providers say."""

import http.server
import json
import threading
import unittest

from brain.patterns import ReActAgent, tool
from brain.providers import AnthropicProvider, OpenAICompatibleProvider, ProviderError


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

    def test_nobody_there(self):
        with Server() as server:
            url = server.url
        with self.assertRaisesRegex(ProviderError, "Cannot ask .*refused"):
            OpenAICompatibleProvider("m", base_url=url).complete([], [])
        with self.assertRaisesRegex(ProviderError, "only http and https"):
            OpenAICompatibleProvider("m", base_url="file:///etc").complete([], [])


if __name__ == "__main__":
    unittest.main()
