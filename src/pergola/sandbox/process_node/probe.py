"""Readiness of a process, by the probe of its container."""

from typing import Final

import aiohttp

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.sandbox.process_node.place import Place

_TIMEOUT: Final = aiohttp.ClientTimeout(total=5.0)
_FIRST_ERROR: Final = 400


async def is_ready(container: JsonObject, place: Place) -> bool:
    """Return whether a container's process answers; without an HTTP probe it is ready at once."""
    request = map_at(container, "readinessProbe", "httpGet")
    if not request:
        return True
    scheme = str(request.get("scheme", "HTTP")).lower()
    port = place.port(_number(container, request["port"]))
    url = f"{scheme}://{place.address}:{port}{request.get('path', '/')}"
    headers = {header["name"]: header["value"] for header in maps_at(request, "httpHeaders")}
    try:
        # As the kubelet, without a check of the certificate.
        async with (
            aiohttp.ClientSession(timeout=_TIMEOUT) as session,
            session.get(url, headers=headers, ssl=False) as answer,
        ):
            return answer.status < _FIRST_ERROR
    except (aiohttp.ClientError, TimeoutError):
        return False


def _number(container: JsonObject, port: int | str) -> int:
    if isinstance(port, int):
        return port
    named = (each for each in maps_at(container, "ports") if each.get("name") == port)
    return int(next(each["containerPort"] for each in named))
