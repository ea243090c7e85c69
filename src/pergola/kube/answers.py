"""Decoding of answers, which may come from a proxy instead of the API server."""

import orjson

from pergola.api.objects import JsonObject
from pergola.kube.errors import Unreachable


def decoded(answer: bytes, path: str) -> JsonObject:
    """Return the object in a successful answer.

    Args:
        path: of the request, for the error.

    Raises:
        Unreachable: it is not valid JSON.
    """
    try:
        obj: JsonObject = orjson.loads(answer)
    except orjson.JSONDecodeError as error:
        raise Unreachable(f"the answer for {path} is not valid JSON: {error}") from error
    return obj
