"""Greets somebody. Every function under @tool becomes a component of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from brain.patterns import Context, ToolError, tool


@dataclass
class Greeting:
    text: str
    letters: Annotated[int, "Letters in the name"]


@tool("Greet somebody by name.", name="{{name}}")
def greet(
    name: Annotated[str, "Whom to greet", {"minLength": 1}],
    context: Context,
    times: Annotated[int, "How often", {"minimum": 1, "maximum": 10}] = 1,
) -> Greeting:
    name = name.strip()
    if not name:
        raise ToolError("no_name", 'Cannot greet nobody: "name" is blank')
    context.emit("greeted", {"name": name})
    text = " ".join([f"Hello, {name}!"] * times)
    return Greeting(text, sum(character.isalpha() for character in name))
