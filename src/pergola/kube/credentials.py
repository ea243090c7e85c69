"""Credentials: what identifies the sender of a request to the API server.

Credentials change while the process runs (tokens expire, certificates are rotated on disk), so each
request consults them; almost always they must answer from memory. No error, log line or `repr`
contains their values.
"""

import base64
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from multidict import CIMultiDict

from pergola.kube.errors import ConfigurationError

READ_FILES_SECONDS: Final = 10.0

Monotonic = Callable[[], float]
"""A monotonic clock in seconds."""


@dataclass(frozen=True)
class ClientCertificate:
    """A certificate (with its chain) and its private key, both PEM."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)

    def load_into(self, context: ssl.SSLContext) -> None:
        """Make the context present this certificate.

        Raises:
            ConfigurationError: certificate or key is invalid, or they do not match.
        """
        with _private_file(self.certificate.rstrip() + b"\n" + self.key) as path:
            try:
                # The empty password prevents OpenSSL from prompting on the terminal.
                context.load_cert_chain(path, password="")
            except (ssl.SSLError, OSError) as error:
                raise ConfigurationError(
                    "client certificate and key are not a matching, unencrypted PEM pair"
                ) from error


class Credentials(Protocol):
    """The credentials that a client presents to the API server."""

    @property
    def version(self) -> int:
        """Increases when `client_certificate` changes, so that new connections are made."""
        ...

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of the next request; refresh expired credentials.

        A `CIMultiDict` may have several headers of one name.

        Raises:
            ConfigurationError: the credentials cannot be used now.
        """
        ...

    def client_certificate(self) -> ClientCertificate | None:
        """Return the client certificate for the TLS handshake, if there is one."""
        ...

    def rejected(self) -> bool:
        """Discard cached values after a 401; return whether a retry may help."""
        ...


class Constant:
    """Credentials that never change: fixed headers, or none at all."""

    version: Final = 0

    def __init__(self, headers: Mapping[str, str] | None = None) -> None:
        self._headers = headers or {}

    async def headers(self) -> Mapping[str, str]:
        """Return the fixed headers."""
        return self._headers

    def client_certificate(self) -> None:
        """Return None."""

    def rejected(self) -> bool:
        """Report that a retry cannot help: there is nothing to read again."""
        return False


class Anonymous(Constant):
    """No credentials: an anonymous user."""

    def __init__(self) -> None:
        super().__init__()


class StaticToken(Constant):
    """A fixed bearer token."""

    def __init__(self, token: str) -> None:
        super().__init__(bearer(token))


class BasicAuth(Constant):
    """User name and password."""

    def __init__(self, username: str, password: str) -> None:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode()
        super().__init__({"Authorization": f"Basic {pair}"})


class Impersonation(Constant):
    """Another user, as whom the API server acts for one that may impersonate."""

    def __init__(self, user: str, *, uid: str = "", groups: Sequence[str] = ()) -> None:
        headers = CIMultiDict({"Impersonate-User": user})
        if uid:
            headers["Impersonate-Uid"] = uid
        for group in groups:
            headers.add("Impersonate-Group", group)
        super().__init__(headers)


class TokenFile:
    """A bearer token in a file that another process renews, e.g. the kubelet.

    The file is checked at most every 10 seconds, and read again if it changed. If it is missing or
    empty for a moment, the last good token stays in use.

    Raises:
        ConfigurationError: the file is unreadable or empty at the start.
    """

    version: Final = 0

    def __init__(self, path: Path, *, monotonic: Monotonic = time.monotonic) -> None:
        self._headers: dict[str, str] = {}
        self._files = _Files([path], monotonic)
        self._read(path)
        self._path = path

    async def headers(self) -> dict[str, str]:
        """Return the bearer token in the file."""
        if self._files.changed():
            with suppress(ConfigurationError):
                self._read(self._path)
        return self._headers

    def client_certificate(self) -> None:
        """Return None."""

    def rejected(self) -> bool:
        """Read the file before the next request; return True."""
        self._files.read_again()
        return True

    def _read(self, path: Path) -> None:
        token = read_file(path, "the token file").decode("utf-8", "replace").strip()
        if not token:
            raise ConfigurationError(f"the token file {path} is empty")
        self._headers = bearer(token)


class Certificate:
    """A client certificate; parts given as paths are read again when they change.

    While a rotation has replaced only one of the two files, the old pair stays in use.

    Raises:
        ConfigurationError: a file is unreadable, or the parts do not match, at the start.
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
        """Return no headers, but check whether the files changed."""
        if self._files.changed():
            self._renew()
        return {}

    def client_certificate(self) -> ClientCertificate:
        """Return the last pair that was read completely."""
        return self._pair

    def rejected(self) -> bool:
        """Check the files before the next request."""
        self._files.read_again()
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

    If two set the same header, the earlier one wins; the first certificate is used.
    """

    def __init__(self, parts: Sequence[Credentials]) -> None:
        self._parts = tuple(parts)

    @property
    def version(self) -> int:
        """Increases when that of a member does."""
        return sum(part.version for part in self._parts)

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of all sources."""
        headers = CIMultiDict[str]()
        for part in reversed(self._parts):
            headers.update(await part.headers())
        return headers

    def client_certificate(self) -> ClientCertificate | None:
        """Return the certificate of the first source that has one."""
        found = (part.client_certificate() for part in self._parts)
        return next((certificate for certificate in found if certificate), None)

    def rejected(self) -> bool:
        """Notify every source; return whether any can retry."""
        answers = [part.rejected() for part in self._parts]
        return any(answers)


def bearer(token: str) -> dict[str, str]:
    """Return the header of a bearer token."""
    return {"Authorization": f"Bearer {token}"}


def read_file(path: Path, what: str) -> bytes:
    """Return the content of a file that a configuration names.

    Raises:
        ConfigurationError: the file cannot be read; the text describes it with `what`.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise ConfigurationError(f"{what} {path} cannot be read: {reason}") from error


class _Files:
    """A detector of changed files that avoids a file system access per request."""

    def __init__(self, paths: Sequence[Path], monotonic: Monotonic) -> None:
        self.paths = paths
        self._monotonic = monotonic
        self._observe = monotonic() + READ_FILES_SECONDS
        self._seen: list[tuple[int, int, int]] | None = self._stat()

    def changed(self) -> bool:
        now = self._monotonic()
        if not self.paths or now < self._observe:
            return False
        self._observe = now + READ_FILES_SECONDS
        seen, self._seen = self._seen, self._stat()
        return self._seen != seen or self._seen is None

    def read_again(self) -> None:
        """Check again at the next call of `changed`, and return True."""
        self._observe, self._seen = self._monotonic(), None

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
    """Yield a path to `content` that only this process can read: OpenSSL requires a path."""
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
