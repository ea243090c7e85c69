"""The static files of the page: read once, and served with a hash of their content."""

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from aiohttp import hdrs, web

PAGE: Final = Path(__file__).parent.parent / "page"
_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class File(NamedTuple):
    """A file with its response headers."""

    body: bytes
    content_type: str
    tag: str


class Files:
    """The files of the page, by their paths below its folder."""

    def __init__(self, folder: Path = PAGE) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): _read(path)
            for path in sorted(folder.rglob("*"))
            if path.suffix in _TYPES
        }

    async def asset(self, request: web.Request) -> web.Response:
        """Answer a request for a file."""
        return self.answer(request, request.match_info["path"])

    def answer(self, request: web.Request, path: str) -> web.Response:
        """Return a file, or 304 if the browser already has it."""
        file = self._files.get(path)
        if file is None:
            raise web.HTTPNotFound(text="there is no such file\n")
        headers = {hdrs.ETAG: f'"{file.tag}"', hdrs.CACHE_CONTROL: "no-cache"}
        if request.headers.get(hdrs.IF_NONE_MATCH) == headers[hdrs.ETAG]:
            return web.Response(status=304, headers=headers)
        return web.Response(
            body=file.body, content_type=file.content_type, charset="utf-8", headers=headers
        )


def _read(path: Path) -> File:
    body = path.read_bytes()
    return File(body, _TYPES[path.suffix], hashlib.sha256(body).hexdigest()[:16])
