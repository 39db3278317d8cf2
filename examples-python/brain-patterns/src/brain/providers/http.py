"""JSON over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .provider import ProviderError

#: An answer beyond this is cut off and refused, in bytes.
MAX_ANSWER = 32 * 1024 * 1024


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

    request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
    if request.type not in ("http", "https"):
        raise ProviderError(f'Cannot ask "{url}": only http and https are spoken')
    try:
        with urllib.request.build_opener(NoRedirects).open(request, timeout=timeout) as answer:
            text = answer.read(MAX_ANSWER + 1)
    except urllib.error.HTTPError as error:
        said = error.read(4096).decode("utf-8", "replace")
        raise ProviderError(f'Cannot ask "{url}": it answered {error.code}: {said}', error.code) from None
    except (OSError, http.client.HTTPException) as error:
        raise ProviderError(f'Cannot ask "{url}": {getattr(error, "reason", error)}') from None
    if len(text) > MAX_ANSWER:
        raise ProviderError(f'Cannot read the answer of "{url}": it has more than {MAX_ANSWER} bytes')
    try:
        return json.loads(text) if text else None
    except ValueError as error:
        raise ProviderError(f'Cannot read the answer of "{url}": it is no JSON ({error})') from None


def post_json(url: str, headers: Mapping[str, str], value: Any, *, timeout: float = 600) -> Any:
    """Posts a JSON value; otherwise as :func:`request_json`."""
    body = json.dumps(value, allow_nan=False).encode()
    return request_json("POST", url, {"content-type": "application/json", **headers}, body, timeout=timeout)
