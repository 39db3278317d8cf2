"""What is found out about a file before it is compiled, and how it is refused."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

from brain.build.compile import BuildError, build
from brain.build.imports import imports_in

HELPER = """
import statistics

def late():
    import colorsys
    import nowhere_at_all
    return colorsys, statistics
"""
TOOLS = """
from brain.patterns import tool, ToolSpec
from helper import late, other

print("said while it is imported")

@tool("One")
def one(n: int) -> int:
    import zoneinfo
    from xml.etree import ElementTree
    return n

two = tool("Two", name="2")(lambda text: text)
same = two
three = ToolSpec("three", late, "Three", {"type": "object"})
"""
OTHER = """
from brain.patterns import tool
@tool("Of another file")
def other(): ...
"""


class Described(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()

    def write(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")

    def refused(self, source):
        with self.assertRaises(BuildError) as raised:
            build(self.folder / source, self.folder / "dist", sys.executable, print)
        return str(raised.exception)

    def test_every_tool_of_a_file_and_what_it_imports(self):
        self.write(tools=TOOLS, helper=HELPER + "\nfrom others import other\n", others=OTHER, not_imported="1/0")
        answer = self.folder / "answer.json"
        command = [sys.executable, "-m", "brain.build.describe", str(self.folder / "tools.py"), str(answer)]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        described = json.loads(answer.read_text())
        tools = {one["variable"]: one["metadata"]["name"] for one in described["tools"]}
        self.assertEqual(tools, {"one": "one", "two": "2", "three": "three"})
        imports = set(described["imports"])
        wanted = {"colorsys", "nowhere_at_all", "statistics", "zoneinfo", "xml.etree.ElementTree", "helper", "others"}
        self.assertEqual(wanted - imports, set())
        # What the package itself imports late, no component needs.
        self.assertNotIn("urllib.request", imports)
        self.assertNotIn("asyncio", imports)
        files = {pathlib.Path(one).name for one in described["files"]}
        self.assertEqual(files, {"tools.py", "helper.py", "others.py"})

    def test_what_cannot_be_built_is_refused_with_the_reason(self):
        twice = (
            'from brain.patterns import tool\na = tool("x", name="t")(lambda: 1)\nb = tool("x", name="t")(lambda: 2)\n'
        )
        bare = 'from brain.patterns import tool\na = tool("", name="t")(lambda: 1)\n'
        self.write(twice=twice, bare=bare, none="x = 1\n", broken="def f(:\n", fails="import nowhere_at_all\n", json="")
        (self.folder / "my-tool.py").write_text("")
        (self.folder / "tool.txt").write_text("")
        faults = {
            "twice.py": 'Cannot build "twice.py": two tools are named "t": give one of them another name=',
            "none.py": 'Cannot build "none.py": there is no tool in it. Decorate a function with @tool("what it does")',
            "bare.py": 'Cannot describe "t": its description must have 1 to 8192 characters, and it has 0',
            "broken.py": 'Cannot build "broken.py": SyntaxError: ',
            "fails.py": "Cannot build \"fails.py\": ModuleNotFoundError: No module named 'nowhere_at_all'\nTraceback",
            "json.py": 'Cannot build "json.py": a module of Python has this name. Rename the file',
            "my-tool.py": 'Cannot build "my-tool.py": Python cannot import a file of this name. Use letters and "_"',
            "tool.txt": "there is no such Python file",
            "missing.py": "there is no such Python file",
        }
        for source, fault in faults.items():
            self.assertIn(fault, self.refused(source), source)
        self.assertFalse((self.folder / "dist").exists())

    def test_a_compiler_that_is_not_there(self):
        self.write(tools=OTHER)
        refusal = self.refused("tools.py")
        self.assertIn('Cannot compile "other": componentize-py says', refusal)
        self.assertIn("No module named 'componentize_py'", refusal)
        self.assertEqual(list((self.folder / "dist").iterdir()), [])

    def test_the_command_names_what_to_install(self):
        done = subprocess.run([sys.executable, "-m", "brain.build", "tool.py"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        said = 'componentize-py is not installed here. Run: pip install "brain-patterns[build]"'
        self.assertEqual(done.stderr, f'Cannot build "tool.py": {said}\n')


class Imports(unittest.TestCase):
    def test_are_found_wherever_they_are(self):
        source = "import a.b, c as d\nfrom e import f, g as h\nfrom . import own\nfrom i import *\nimport antigravity\n"
        source += "class K:\n def m(self):\n  if 1:\n   import late\n"
        self.assertEqual(imports_in(source, "x.py"), {"a.b", "c", "e", "e.f", "e.g", "i", "late"})


if __name__ == "__main__":
    unittest.main()
