"""JSON over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..schema.json_values import json_value
from .provider import ProviderError

#: An answer beyond this is cut off and refused, in bytes.
MAX_ANSWER = 32 * 1024 * 1024
#: Of an answer that is of no use, in characters.
_MOST_SHOWN = 500


def request_json(
    method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, *, timeout: float = 600
) -> Any:
    """Sends a request once and reads its answer, a JSON value. Redirects are not followed: they would carry the key.

    :param timeout: seconds without a sign of the other side
    :raises ProviderError: for anything but an answer 2xx in JSON
    """
    # Late: no component needs them, and they are large.
    import http.client
    import urllib.error
    import urllib.request

    class NoRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    if not url.lower().startswith(("http://", "https://")):
        raise ProviderError(f'Cannot ask "{url}": only http and https are spoken')
    try:
        request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
        with urllib.request.build_opener(NoRedirects).open(request, timeout=timeout) as answer:
            text = answer.read(MAX_ANSWER + 1)
            missing = answer.length
    except urllib.error.HTTPError as error:
        said = error.read(4096).decode("utf-8", "replace")
        raise ProviderError(f'Cannot ask "{url}": it answered {error.code}: {said}', error.code) from None
    except (OSError, http.client.HTTPException) as error:
        raise ProviderError(f'Cannot ask "{url}": {getattr(error, "reason", error)}') from None
    except ValueError:
        # What Python says of it quotes the header, which holds the key.
        raise ProviderError(
            f'Cannot ask "{url}": the address or the key has a character that HTTP cannot send, such as a line break'
        ) from None
    if len(text) > MAX_ANSWER:
        raise ProviderError(f'Cannot read the answer of "{url}": it has more than {MAX_ANSWER} bytes')
    if missing:
        raise ProviderError(f'Cannot read the answer of "{url}": it ended {missing} bytes too early')
    try:
        return json_value(text) if text else None
    except ValueError as error:
        raise ProviderError(f'Cannot read the answer of "{url}": it is no JSON ({error})') from None


def unreadable(url: str, answer: Any, error: Exception) -> ProviderError:
    """Says what came instead: some servers tell of their failures with the status 200."""
    said = json.dumps(answer)
    shown = said if len(said) <= _MOST_SHOWN else f"{said[:_MOST_SHOWN]}…"
    return ProviderError(f'Cannot read the answer of "{url}" ({type(error).__name__} {error}): {shown}')


def post_json(url: str, headers: Mapping[str, str], value: Any, *, timeout: float = 600) -> Any:
    """Posts a JSON value; otherwise as :func:`request_json`."""
    body = json.dumps(value, allow_nan=False).encode()
    return request_json("POST", url, {"content-type": "application/json", **headers}, body, timeout=timeout)
