"""What a component says about its tool."""

from __future__ import annotations

import json
from typing import Any

from ..patterns.tools import ToolSpec, options_of

#: As Brain has them (docs/authoring.md).
_MAX_DESCRIPTION = 8192
_MAX_BYTES = 64 * 1024


def metadata_of(spec: ToolSpec) -> dict[str, Any]:
    """Name, description and schemas of a tool, as the section ``brain:tool-metadata`` has them.

    :raises ValueError: for what Brain would refuse
    """
    if not spec.description or len(spec.description) > _MAX_DESCRIPTION:
        raise ValueError(
            f'Cannot describe "{spec.name}": its description must have 1 to {_MAX_DESCRIPTION} characters, '
            f"and it has {len(spec.description)}"
        )
    metadata: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.parameters,
    }
    if spec.output_schema is not None:
        metadata["output_schema"] = spec.output_schema
    options = options_of(spec)
    if options is not None:
        metadata["options_schema"] = options[1]
    metadata_text(metadata)
    return metadata


def metadata_text(metadata: dict[str, Any]) -> bytes:
    """:raises ValueError: for more than a component may say"""
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > _MAX_BYTES:
        raise ValueError(
            f'Cannot describe "{metadata["name"]}": its schemas have {len(text)} bytes, and {_MAX_BYTES} are allowed'
        )
    return text
