"""Whether a server answers and is ready for prompts."""

import http.client
import urllib.error
import urllib.request

from trajectile.model.serving.folder import Endpoint

PROBE_TIMEOUT_S = 5.0
UNAVAILABLE = 503
REFUSALS = ("HTTP 401", "HTTP 403")


def problem(endpoint: Endpoint) -> str:
    """Return "" where the server is ready, else what it says or lacks.

    llama-server lists its model while it still loads it, and only its /health tells; servers without one say 404.
    """
    listed = _ask(f"{endpoint.base_url}/models", endpoint.api_key)
    if listed != 200:
        return f"HTTP {listed}" if isinstance(listed, int) else listed
    health = _ask(f"{endpoint.base_url.removesuffix('/v1')}/health", endpoint.api_key)
    if isinstance(health, str):
        return f"/health: {health}"
    return "it is still loading" if health == UNAVAILABLE else ""


def _ask(url: str, key: str) -> int | str:
    """Return the status of an answer, or what went wrong."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {key}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback never goes by a proxy
    try:
        with opener.open(request, timeout=PROBE_TIMEOUT_S) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        return str(reason) or type(reason).__name__
