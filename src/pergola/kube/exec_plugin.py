"""Credentials from exec plugins, as in cloud providers' kubeconfigs.

The protocol is `client.authentication.k8s.io`: the program reads its input from the variable
KUBERNETES_EXEC_INFO and prints an ExecCredential. Its standard error goes straight to the user, so
that it can print explanations or prompt for a login.
"""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

import orjson

from pergola.api.objects import JsonObject
from pergola.kube.child_process import end
from pergola.kube.credentials import ClientCertificate, Monotonic, bearer
from pergola.kube.errors import ConfigurationError

API_VERSIONS: Final = (
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
)
TIMEOUT_SECONDS: Final = 60.0
_REJECTED_AGAIN_SECONDS: Final = 5.0
_FAILED_AGAIN_SECONDS: Final = 5.0


@dataclass(frozen=True)
class ExecPlugin:
    """The configuration of the program.

    Attributes:
        where: file and field path of its configuration, for error messages.
        env: variables to add to the environment of this process.
        cluster: information about the cluster, for a program that requests it.
        install_hint: shown if the program is missing.
    """

    where: str
    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    interactive_mode: Literal["Never", "IfAvailable", "Always"] = "IfAvailable"
    cluster: JsonObject | None = None
    install_hint: str = ""


class ExecCredentials:
    """The token or client certificate issued by a program.

    The program runs for the first request, when its answer has expired, and when the server
    rejected its answer; never twice at once. For five seconds after a failure, all requests fail
    with its error: programs that hang would delay them one after another.

    Args:
        timeout: the time limit in seconds of a run that cannot prompt the user.
    """

    def __init__(
        self,
        plugin: ExecPlugin,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        monotonic: Monotonic = time.monotonic,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.version = 0
        self._plugin = plugin
        self._now = now
        self._monotonic = monotonic
        self._timeout = timeout
        self._answer: _Answer | None = None
        self._answered_at = 0.0
        self._stale = False
        self._failure: tuple[float, str] | None = None
        self._running = asyncio.Lock()

    async def headers(self) -> dict[str, str]:
        """Return the token as a header, if the program issued one."""
        answer = self._valid()
        if answer is None:
            async with self._running:
                answer = self._valid() or await self._refresh()
        return answer.headers

    def client_certificate(self) -> ClientCertificate | None:
        """Return the certificate, if the program issued one; None before the first `headers`."""
        return self._answer.certificate if self._answer else None

    def rejected(self) -> bool:
        """Run the program again before the next request.

        An answer that is only seconds old is kept: the rejected request was probably sent before
        it.
        """
        if self._monotonic() - self._answered_at >= _REJECTED_AGAIN_SECONDS:
            self._stale = True
        return True

    def _valid(self) -> "_Answer | None":
        answer = self._answer
        if answer is None or self._stale:
            return None
        return None if answer.expires and answer.expires <= self._now() else answer

    async def _refresh(self) -> "_Answer":
        failure = self._failure
        if failure is not None and self._monotonic() - failure[0] < _FAILED_AGAIN_SECONDS:
            raise ConfigurationError(failure[1])
        try:
            answer = _read_answer(self._plugin, await self._run())
        except ConfigurationError as error:
            self._failure = self._monotonic(), str(error)
            raise
        if answer.certificate != self.client_certificate():
            self.version += 1
        self._answer, self._answered_at, self._stale = answer, self._monotonic(), False
        return answer

    async def _run(self) -> bytes:
        plugin, interactive = self._plugin, self._may_ask()
        info = _exec_info(plugin, interactive=interactive)
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": info},
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise self._cannot_start(error) from error
        try:
            async with asyncio.timeout(None if interactive else self._timeout):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._failed(f"gave no answer within {self._timeout:g} seconds") from None
        finally:
            if process.returncode is None:
                await end(process)
        if process.returncode:
            raise self._failed(
                f"ended with exit code {process.returncode}; its error output says why"
            )
        return output

    def _may_ask(self) -> bool:
        mode = self._plugin.interactive_mode
        interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not interactive:
            raise self._failed("wants to ask the user, but standard input is not a terminal")
        return interactive

    def _cannot_start(self, error: OSError) -> ConfigurationError:
        missing = isinstance(error, FileNotFoundError)
        reason = "is not installed" if missing else f"cannot be started: {error.strerror}"
        hint = f"; {self._plugin.install_hint}" if missing and self._plugin.install_hint else ""
        return self._failed(reason + hint)

    def _failed(self, reason: str) -> ConfigurationError:
        return _failure(self._plugin, reason)


@dataclass(frozen=True)
class _Answer:
    headers: dict[str, str] = field(repr=False)
    certificate: ClientCertificate | None
    expires: datetime | None


def _exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    spec: JsonObject = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
    return orjson.dumps(info).decode()


def _read_answer(plugin: ExecPlugin, output: bytes) -> _Answer:
    """Parse the program's output; errors never quote it."""
    try:
        answer = orjson.loads(output)
    except orjson.JSONDecodeError:
        raise _failure(plugin, "printed something other than JSON") from None
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise _failure(plugin, "did not print an ExecCredential")
    if answer.get("apiVersion") != plugin.api_version:
        raise _failure(plugin, f"printed an ExecCredential that is not {plugin.api_version}")
    status = answer.get("status")
    if not isinstance(status, dict):
        raise _failure(plugin, "printed an ExecCredential without a status")
    token, certificate = _text(plugin, status, "token"), _certificate(plugin, status)
    if not token and certificate is None:
        raise _failure(plugin, "issued neither a token nor a client certificate")
    return _Answer(bearer(token) if token else {}, certificate, _expiry(plugin, status))


def _certificate(plugin: ExecPlugin, status: dict[str, Any]) -> ClientCertificate | None:
    certificate = _text(plugin, status, "clientCertificateData")
    key = _text(plugin, status, "clientKeyData")
    if bool(certificate) != bool(key):
        raise _failure(plugin, "issued only one of client certificate and client key")
    return ClientCertificate(certificate.encode(), key.encode()) if certificate else None


def _expiry(plugin: ExecPlugin, status: dict[str, Any]) -> datetime | None:
    text = _text(plugin, status, "expirationTimestamp")
    if not text:
        return None
    try:
        expires = datetime.fromisoformat(text)
    except ValueError:
        raise _failure(plugin, "issued an expirationTimestamp that is not RFC 3339") from None
    return expires if expires.tzinfo else expires.replace(tzinfo=UTC)


def _text(plugin: ExecPlugin, status: dict[str, Any], name: str) -> str:
    value = status.get(name) or ""
    if not isinstance(value, str):
        raise _failure(plugin, f"issued a {name} that is not a string")
    return value


def _failure(plugin: ExecPlugin, reason: str) -> ConfigurationError:
    return ConfigurationError(f'{plugin.where}: the command "{plugin.command}" {reason}')
