"""File systems that take a while to become available, as in AWS (spec 30 §12)."""

from typing import Final

import orjson
from aiohttp import web

from pergola.api.objects import JsonObject
from pergola.sandbox.aws.answers import Call

_LISTS: Final = {
    "DescribeFileSystems": ("FileSystems", "FileSystemId"),
    "DescribeMountTargets": ("MountTargets", "MountTargetId"),
}
_CREATIONS: Final = {"CreateFileSystem": "FileSystemId", "CreateMountTarget": "MountTargetId"}


class FileSystems:
    """File systems and mount targets are `creating` at first; in moto they never are.

    Args:
        reads: how many reads describe them so.
    """

    def __init__(self, reads: int) -> None:
        self._reads = reads
        self._left: dict[str, int] = {}

    def corrected(self, call: Call, answer: web.Response) -> web.Response:
        """Return an answer of EFS, with the states that AWS reports."""
        body = answer.body
        if not isinstance(body, bytes) or answer.status >= web.HTTPBadRequest.status_code:
            return answer
        if call.operation in _CREATIONS:
            found = orjson.loads(body)
            self._left[found[_CREATIONS[call.operation]]] = self._reads
            found["LifeCycleState"] = "creating"
            return _with(answer, found)
        if call.operation in _LISTS:
            found = orjson.loads(body)
            items, name = _LISTS[call.operation]
            for item in found.get(items) or []:
                self._show(item, item[name])
            return _with(answer, found)
        return answer

    def _show(self, item: JsonObject, name: str) -> None:
        if self._left.get(name):
            self._left[name] -= 1
            item["LifeCycleState"] = "creating"


def _with(answer: web.Response, body: JsonObject) -> web.Response:
    return web.json_response(body, status=answer.status)
