import unittest

from brain.patterns import Context, ToolError
from tool import Greeting, greet


class Greet(unittest.TestCase):
    def test_greets_as_often_as_it_is_told_to(self):
        context = Context()
        self.assertEqual(greet("Ada", context, times=2), Greeting("Hello, Ada! Hello, Ada!", 3))
        self.assertEqual([(one.service, *one.arguments) for one in context.records], [("emit", "greeted", {"name": "Ada"})])

    def test_a_blank_name_is_refused(self):
        with self.assertRaises(ToolError) as raised:
            greet(" ", Context())
        self.assertEqual(raised.exception.code, "no_name")


if __name__ == "__main__":
    unittest.main()
