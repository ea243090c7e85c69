"""Errors of requests to an API server.

KubeError                  root: every failure of this room
├── ApiError               the server answered with a Status; keeps its code, reason and message
│   ├── NotFound           404
│   ├── AlreadyExists      409, reason AlreadyExists
│   ├── Conflict           409, any other reason: the resourceVersion or a precondition is stale
│   ├── Invalid            422
│   ├── Gone               410: the requested resourceVersion is too old
│   ├── Unauthorized       401
│   ├── Forbidden          403
│   └── TooManyRequests    429; `retry_after` in seconds
├── Unreachable            no answer: connection refused, reset, timed out, TLS failure
│   └── WrongAnswer        an answer that does not fit the question, as from a broken proxy
├── UnknownKind            the server serves no such kind (spec 10 §3.1)
├── InvalidKey             no object can have this name and namespace; nothing was sent
└── ConfigurationError     a kubeconfig, or credentials, that cannot work; the text says why
"""

from typing import Any, Final, NamedTuple

from pergola.api.objects import GroupVersionKind, JsonObject, map_at, maps_at

LONGEST_WAIT_SECONDS: Final = 30.0
"""How long a server can make a client wait: a request with all its retries, a watch, a key."""


class Sender(NamedTuple):
    """Where a request went, and as whom: names of the kubeconfig, which may be empty."""

    server: str
    user: str
    context: str


class KubeError(Exception):
    """Root of all failures of this room."""


class ConfigurationError(KubeError):
    """A kubeconfig or credential that cannot work."""


class Unreachable(KubeError):
    """The API server gave no answer.

    Attributes:
        sender: of the request; None if unknown.
    """

    sender: Sender | None = None


class WrongAnswer(Unreachable):
    """An answer that does not fit the question; it says nothing about the cluster."""


class UnknownKind(KubeError):
    """The API server serves no such kind, at least not now."""

    def __init__(self, kind: GroupVersionKind) -> None:
        self.kind = kind
        super().__init__(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')


class InvalidKey(KubeError):
    """No object can have this name and namespace, so no request was sent."""

    def __init__(self, kind: GroupVersionKind, problem: str) -> None:
        self.kind = kind
        super().__init__(f"{kind.kind}: {problem}")


class ApiError(KubeError):
    """The API server refused; the text is its own message.

    Attributes:
        code: the HTTP status.
        reason: the Status reason, e.g. `AlreadyExists`; may be empty.
        status: the whole Status object (details.causes names the invalid fields).
        body: an answer that is not a Status; it may be anyone's, so the text does not contain it.
    """

    def __init__(self, code: int, status: JsonObject) -> None:
        self.code = code
        self.status = status
        self.body = b""
        # Not every Status comes from an API server.
        reason, message = status.get("reason"), status.get("message")
        self.reason = reason if isinstance(reason, str) else ""
        text = message if isinstance(message, str) else ""
        super().__init__(text or self.reason or f"HTTP status {code}")

    @property
    def causes(self) -> list[dict[str, Any]]:
        """`details.causes`: `field`, `reason` and `message` of each cause."""
        return maps_at(self.status, "details", "causes")

    @property
    def is_namespace_terminating(self) -> bool:
        """Whether nothing can be created in a namespace because it is being deleted."""
        return any(cause.get("reason") == "NamespaceTerminating" for cause in self.causes)

    @property
    def retry_after(self) -> float:
        """Seconds to wait before a retry, according to the server; 0 if it does not say."""
        seconds = map_at(self.status, "details").get("retryAfterSeconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            return 0.0
        return max(0.0, float(seconds))


class NotFound(ApiError):
    """The object or path does not exist."""


class AlreadyExists(ApiError):
    """An object of this name already exists."""


class Conflict(ApiError):
    """The object changed since it was read, or a precondition failed."""


class Invalid(ApiError):
    """The object breaks a validation rule; `causes` has the fields."""


class Gone(ApiError):
    """The requested resourceVersion is too old; list again."""


class Unauthorized(ApiError):
    """The server does not know the identity of the client.

    Attributes:
        sender: of the request; None if unknown.
    """

    sender: Sender | None = None


class Forbidden(ApiError):
    """The server knows the identity of the client, and refuses."""


class TooManyRequests(ApiError):
    """The server is busy; retry later."""

    @property
    def retry_after(self) -> float:
        """Seconds to wait, according to the server; 1 by default."""
        details = map_at(self.status, "details")
        return super().retry_after if "retryAfterSeconds" in details else 1.0


_BY_CODE: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def is_outage(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, is an outage of an API server."""
    while error is not None:
        if isinstance(error, Unreachable) or (isinstance(error, ApiError) and error.code == 503):
            return True
        error = error.__cause__
    return False


def wait_asked_by(error: BaseException | None) -> float:
    """Return the seconds that a server asks to wait, 30 at most, in an error or one of its causes.

    0 if none asks.
    """
    while error is not None:
        if isinstance(error, ApiError) and error.retry_after:
            return min(error.retry_after, LONGEST_WAIT_SECONDS)
        error = error.__cause__
    return 0.0


def lacks_dependency(error: BaseException) -> bool:
    """Return whether a write failed because the object's namespace or kind does not exist."""
    if isinstance(error, NotFound):
        return map_at(error.status, "details").get("kind") == "namespaces"
    return isinstance(error, UnknownKind)


def api_error(code: int, status: JsonObject) -> ApiError:
    """Return the error of the right class for a Status that came with HTTP status `code`."""
    if code == 409 and status.get("reason") == "AlreadyExists":
        return AlreadyExists(code, status)
    return _BY_CODE.get(code, ApiError)(code, status)
