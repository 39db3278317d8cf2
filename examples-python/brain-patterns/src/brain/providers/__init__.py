"""What answers an agent: nothing but an echo, models over HTTP, or a session of Brain."""

from .anthropic import AnthropicProvider
from .brain_session import BrainProvider
from .local_echo import LocalEchoProvider
from .openai_compatible import OpenAICompatibleProvider
from .provider import Answer, Message, Provider, ProviderError, ToolCall, ToolResult

__all__ = [
    "Answer",
    "AnthropicProvider",
    "BrainProvider",
    "LocalEchoProvider",
    "Message",
    "OpenAICompatibleProvider",
    "Provider",
    "ProviderError",
    "ToolCall",
    "ToolResult",
]
