"""HTTP requests of the page, without words of malformed ones in answers and logs.

A line that is not valid HTTP may contain a token; proxies may log the answer.
"""

import logging

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError


class RequestHandler(web.RequestHandler):
    """The protocol of one connection."""

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer a request that failed."""
        if isinstance(exc, HttpProcessingError):
            message = "the request is not valid HTTP\n"
        return super().handle_error(request, status, exc, message)


def requests_logger() -> logging.Logger:
    """Return a logger for failed requests; malformed ones are left out."""
    logger = logging.getLogger("pergola.dashboard.requests")
    logger.addFilter(_is_our_failure)
    return logger


def no_logger() -> logging.Logger:
    """Return a logger that drops everything: addresses of the page are not logged."""
    logger = logging.getLogger("pergola.dashboard.accesses")
    logger.disabled = True
    return logger


def _is_our_failure(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)
