"""Who asks: what a request to an API server carries so that the server knows its sender.

Credentials change while the process runs (tokens expire, certificates are rotated on disk), so
they are asked for each request and must answer from memory nearly always. Their values appear in
no error, log line or `repr`.
"""

import base64
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from pergola.kube.errors import ConfigurationError

LOOK_AT_FILES_SECONDS: Final = 10.0

Monotonic = Callable[[], float]
"""A clock in seconds that never goes back."""


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate (with its chain) and its private key, both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Makes the context present this certificate.

        Raises:
            ConfigurationError: it is no certificate, no key, or they do not belong together.
        """
        with _private_file(self.certificate.rstrip() + b"\n" + self.key) as path:
            try:
                # The empty password keeps OpenSSL from asking for one on the terminal.
                context.load_cert_chain(path, password="")
            except (ssl.SSLError, OSError) as error:
                raise ConfigurationError(
                    "client certificate and key are no matching, unencrypted PEM pair"
                ) from error


class Credentials(Protocol):
    """What a client shows to the API server."""

    @property
    def version(self) -> int:
        """Grows when `client_certificate` changes, so that connections are made anew."""
        ...

    async def headers(self) -> dict[str, str]:
        """The headers of the next request; refreshes what expired.

        Raises:
            ConfigurationError: there are no usable credentials (now).
        """
        ...

    def client_certificate(self) -> ClientCertificate | None:
        """What the TLS handshake presents, if anything."""
        ...

    def rejected(self) -> bool:
        """The server answered 401: forget what is cached; says whether a second try may help."""
        ...


class Constant:
    """Credentials that never change: fixed headers, or none at all."""

    version: Final = 0

    def __init__(self, headers: dict[str, str] | None = None) -> None:
        self._headers = headers or {}

    async def headers(self) -> dict[str, str]:
        """Always the same."""
        return self._headers

    def client_certificate(self) -> None:
        """None."""

    def rejected(self) -> bool:
        """Nothing else is known, so no second try helps."""
        return False


class Anonymous(Constant):
    """Nobody in particular."""

    def __init__(self) -> None:
        super().__init__()


class StaticToken(Constant):
    """A bearer token."""

    def __init__(self, token: str) -> None:
        super().__init__(bearer(token))


class BasicAuth(Constant):
    """User name and password."""

    def __init__(self, username: str, password: str) -> None:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        super().__init__({"Authorization": f"Basic {pair}"})


class TokenFile:
    """A bearer token in a file that somebody else renews, e.g. the kubelet.

    The file is looked at every 10 seconds at most, and read again when it changed. A file that
    vanishes or is empty for a moment does not take the last good token away.

    Raises:
        ConfigurationError: the file cannot be read, or is empty, at the start.
    """

    version: Final = 0

    def __init__(self, path: Path, *, monotonic: Monotonic = time.monotonic) -> None:
        self._headers: dict[str, str] = {}
        self._files = _Files([path], monotonic)
        self._read(path)
        self._path = path

    async def headers(self) -> dict[str, str]:
        """The bearer token as the file has it."""
        if self._files.changed():
            with suppress(ConfigurationError):
                self._read(self._path)
        return self._headers

    def client_certificate(self) -> None:
        """None."""

    def rejected(self) -> bool:
        """The file is read before the next request."""
        self._files.look_again()
        return True

    def _read(self, path: Path) -> None:
        token = read_file(path, "the token file").decode("utf-8", "replace").strip()
        if not token:
            raise ConfigurationError(f"the token file {path} is empty")
        self._headers = bearer(token)


class Certificate:
    """A client certificate; parts that are given as paths are read again when they change.

    While a rotation has replaced only one of two files, the old pair is kept.

    Raises:
        ConfigurationError: a file cannot be read, or the parts do not match, at the start.
    """

    def __init__(
        self,
        certificate: bytes | Path,
        key: bytes | Path,
        *,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._parts = certificate, key
        self._files = _Files([p for p in self._parts if isinstance(p, Path)], monotonic)
        self._pair = self._read()
        self.version = 0

    async def headers(self) -> dict[str, str]:
        """None; but the moment to look whether the files changed."""
        if self._files.changed():
            self._renew()
        return {}

    def client_certificate(self) -> ClientCertificate:
        """The pair that was last read whole."""
        return self._pair

    def rejected(self) -> bool:
        """Files are looked at before the next request."""
        self._files.look_again()
        return bool(self._files.paths)

    def _renew(self) -> None:
        try:
            pair = self._read()
        except ConfigurationError:
            return
        if pair != self._pair:
            self._pair = pair
            self.version += 1

    def _read(self) -> ClientCertificate:
        certificate, key = self._parts
        pair = ClientCertificate(
            _content(certificate, "the client certificate"), _content(key, "the client key")
        )
        pair.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return pair


class Combined:
    """Several credentials at once, e.g. a client certificate and a token.

    Of two that set the same header, the earlier wins; the first certificate counts.
    """

    def __init__(self, parts: Sequence[Credentials]) -> None:
        self._parts = tuple(parts)

    @property
    def version(self) -> int:
        """Grows when one of them grows."""
        return sum(part.version for part in self._parts)

    async def headers(self) -> dict[str, str]:
        """Those of all."""
        headers: dict[str, str] = {}
        for part in reversed(self._parts):
            headers |= await part.headers()
        return headers

    def client_certificate(self) -> ClientCertificate | None:
        """That of the first which has one."""
        found = (part.client_certificate() for part in self._parts)
        return next((certificate for certificate in found if certificate), None)

    def rejected(self) -> bool:
        """All are told."""
        answers = [part.rejected() for part in self._parts]
        return any(answers)


def bearer(token: str) -> dict[str, str]:
    """The header of a bearer token."""
    return {"Authorization": f"Bearer {token}"}


def read_file(path: Path, what: str) -> bytes:
    """The content of a file that a configuration names.

    Raises:
        ConfigurationError: it cannot be read; `what` says in the text what the file was for.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigurationError(f"{what} {path} cannot be read: {reason}") from error


class _Files:
    """Notices that files changed, without asking the file system for each request."""

    def __init__(self, paths: Sequence[Path], monotonic: Monotonic) -> None:
        self.paths = paths
        self._monotonic = monotonic
        self._look_at = monotonic() + LOOK_AT_FILES_SECONDS
        self._seen: list[tuple[int, int, int]] | None = self._stat()

    def changed(self) -> bool:
        now = self._monotonic()
        if not self.paths or now < self._look_at:
            return False
        self._look_at = now + LOOK_AT_FILES_SECONDS
        seen, self._seen = self._seen, self._stat()
        return self._seen != seen or self._seen is None

    def look_again(self) -> None:
        """The next `changed` looks at once, and says yes."""
        self._look_at, self._seen = self._monotonic(), None

    def _stat(self) -> list[tuple[int, int, int]] | None:
        try:
            stats = [path.stat() for path in self.paths]
        except OSError:
            return None
        return [(stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in stats]


def _content(part: bytes | Path, what: str) -> bytes:
    return part if isinstance(part, bytes) else read_file(part, what)


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A path under which only this process can read `content`; OpenSSL takes nothing but paths."""
    if sys.platform == "linux":
        # In memory: containers often have no writable file system.
        descriptor = os.memfd_create("client-certificate")
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile() as temporary:  # mode 0600
            temporary.write(content)
            temporary.flush()
            yield temporary.name
