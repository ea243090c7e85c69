import asyncio
import base64
import json
import os
import ssl
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pergola.kube import credentials as credentials_module
from pergola.kube.credentials import (
    Anonymous,
    BasicAuth,
    Certificate,
    ClientCertificate,
    Combined,
    Credentials,
    StaticToken,
    TokenFile,
)
from pergola.kube.errors import ConfigurationError
from pergola.kube.exec_plugin import ExecCredentials, ExecPlugin

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Ticks:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def pem_pair(name: str = "me") -> ClientCertificate:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOON - timedelta(days=1))
        .not_valid_after(NOON + timedelta(days=365))
        .sign(key, hashes.SHA256())
    )
    return ClientCertificate(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


@pytest.mark.parametrize(
    ("credentials", "headers"),
    [
        (Anonymous(), {}),
        (StaticToken("abc"), {"Authorization": "Bearer abc"}),
        (
            BasicAuth("me", "pass:wörd"),
            {"Authorization": "Basic " + base64.b64encode("me:pass:wörd".encode()).decode()},
        ),
    ],
)
async def test_constant_credentials_never_change(
    credentials: Credentials, headers: dict[str, str]
) -> None:
    assert await credentials.headers() == headers
    assert credentials.client_certificate() is None
    assert not credentials.rejected()
    assert credentials.version == 0


async def test_a_changed_token_file_is_read_again(tmp_path: Path) -> None:
    ticks, file = Ticks(), tmp_path / "token"
    file.write_text("first\n")
    credentials = TokenFile(file, monotonic=ticks)
    assert await credentials.headers() == {"Authorization": "Bearer first"}

    file.write_text("second token\n")
    ticks.seconds += 9.9
    assert await credentials.headers() == {"Authorization": "Bearer first"}
    ticks.seconds += 0.1
    assert await credentials.headers() == {"Authorization": "Bearer second token"}


async def test_a_projected_token_is_followed_through_its_symlink(tmp_path: Path) -> None:
    ticks = Ticks()
    for version in ("..1", "..2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "token").write_text(version)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "token").symlink_to("..data/token")
    credentials = TokenFile(tmp_path / "token", monotonic=ticks)

    (tmp_path / "new").symlink_to("..2")
    (tmp_path / "new").rename(tmp_path / "..data")
    ticks.seconds += 10

    assert await credentials.headers() == {"Authorization": "Bearer ..2"}


async def test_an_unchanged_token_file_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks, file = Ticks(), tmp_path / "token"
    file.write_text("first")
    credentials = TokenFile(file, monotonic=ticks)

    def refuse(path: Path, what: str) -> bytes:
        raise AssertionError(f"{what} {path} was read")

    monkeypatch.setattr(credentials_module, "read_file", refuse)
    ticks.seconds += 60

    assert await credentials.headers() == {"Authorization": "Bearer first"}


async def test_a_rejected_token_file_is_read_before_the_next_request(tmp_path: Path) -> None:
    ticks, file = Ticks(), tmp_path / "token"
    file.write_text("first")
    credentials = TokenFile(file, monotonic=ticks)
    file.write_text("other")

    assert credentials.rejected()

    assert await credentials.headers() == {"Authorization": "Bearer other"}


@pytest.mark.parametrize("accident", [Path.unlink, Path.touch, lambda file: file.write_text(" ")])
async def test_an_unreadable_token_file_keeps_the_last_valid_token(
    tmp_path: Path, accident: Callable[[Path], object]
) -> None:
    ticks, file = Ticks(), tmp_path / "token"
    file.write_text("first")
    credentials = TokenFile(file, monotonic=ticks)
    accident(file)
    ticks.seconds += 10
    assert await credentials.headers() == {"Authorization": "Bearer first"}

    file.write_text("recovered")
    ticks.seconds += 10
    assert await credentials.headers() == {"Authorization": "Bearer recovered"}


def test_a_token_file_must_be_usable_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="token cannot be read: no such file"):
        TokenFile(tmp_path / "token")
    (tmp_path / "token").write_text("\n")
    with pytest.raises(ConfigurationError, match="token is empty"):
        TokenFile(tmp_path / "token")


async def test_a_certificate_given_as_data_never_changes() -> None:
    pair = pem_pair()
    credentials = Certificate(pair.certificate, pair.key)

    assert await credentials.headers() == {}
    assert credentials.client_certificate() == pair
    assert not credentials.rejected()
    assert credentials.version == 0


async def test_a_rotated_certificate_makes_a_new_version(tmp_path: Path) -> None:
    ticks, old, new = Ticks(), pem_pair(), pem_pair()
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(old.certificate)
    key.write_bytes(old.key)
    credentials = Certificate(certificate, key, monotonic=ticks)

    certificate.write_bytes(new.certificate)
    ticks.seconds += 10
    await credentials.headers()
    assert credentials.client_certificate() == old  # half a rotation is ignored
    assert credentials.version == 0

    key.write_bytes(new.key)
    ticks.seconds += 10
    await credentials.headers()
    assert credentials.client_certificate() == new
    assert credentials.version == 1


async def test_touching_a_certificate_file_makes_no_new_version(
    tmp_path: Path,
) -> None:
    ticks, pair = Ticks(), pem_pair()
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    credentials = Certificate(tmp_path / "tls.crt", pair.key, monotonic=ticks)
    os.utime(tmp_path / "tls.crt", (1, 1))

    assert credentials.rejected()
    await credentials.headers()

    assert credentials.version == 0


def test_a_certificate_and_a_key_must_match() -> None:
    with pytest.raises(ConfigurationError, match="not a matching, unencrypted PEM pair"):
        Certificate(pem_pair().certificate, pem_pair().key)
    with pytest.raises(ConfigurationError, match="not a matching, unencrypted PEM pair"):
        Certificate(b"nonsense", b"more nonsense")


def test_an_encrypted_key_is_refused_without_a_password_prompt() -> None:
    pair = pem_pair()
    key = serialization.load_pem_private_key(pair.key, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(ConfigurationError, match="unencrypted"):
        Certificate(pair.certificate, encrypted)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_key_is_never_in_a_file_that_others_can_read(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    pair = pem_pair()
    seen: list[tuple[Path, int]] = []

    class Context(ssl.SSLContext):
        def load_cert_chain(self, certfile: object, *_: object, **__: object) -> None:
            path = Path(str(certfile))
            assert pair.key in path.read_bytes()
            seen.append((path, path.stat().st_mode))

    pair.load_into(Context(ssl.PROTOCOL_TLS_CLIENT))

    [(path, mode)] = seen
    assert not path.exists()
    assert platform == "linux" or not mode & (stat.S_IRWXG | stat.S_IRWXO)


async def test_combined_credentials_include_all_parts() -> None:
    pair = pem_pair()
    credentials = Combined([Certificate(pair.certificate, pair.key), StaticToken("abc")])

    assert await credentials.headers() == {"Authorization": "Bearer abc"}
    assert credentials.client_certificate() == pair
    assert credentials.version == 0
    assert not credentials.rejected()


def test_the_repr_of_credentials_shows_no_secret() -> None:
    pair = pem_pair()
    things = [StaticToken("hush"), BasicAuth("me", "hush"), pair, plugin("x", env={"T": "hush"})]
    assert "hush" not in repr(things)
    assert "PRIVATE KEY" not in repr(things)


# -- programs


def plugin(script: str, **fields: object) -> ExecPlugin:
    """Return a plugin that runs a line of Python."""
    defaults: dict[str, object] = {
        "where": "config: users[me].user.exec",
        "api_version": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ("-S", "-E", "-c", f"import json, os, sys\n{script}"),
        "interactive_mode": "Never",
    }
    return ExecPlugin(**{**defaults, **fields})  # type: ignore[arg-type] # a table of fields


def answer(**status: str) -> str:
    """Return a script that prints an ExecCredential, and appends a line to runs.log if given."""
    credential = {
        "kind": "ExecCredential",
        "apiVersion": "client.authentication.k8s.io/v1",
        "status": status,
    }
    return (
        "os.environ.get('RUNS') and open(os.environ['RUNS'], 'a').write('run\\n')\n"
        f"print({json.dumps(credential)!r})"
    )


async def test_a_program_provides_a_token() -> None:
    credentials = ExecCredentials(plugin(answer(token="abc")))
    assert credentials.client_certificate() is None
    assert await credentials.headers() == {"Authorization": "Bearer abc"}
    assert credentials.version == 0


async def test_a_program_provides_a_certificate() -> None:
    pair = pem_pair()
    credentials = ExecCredentials(
        plugin(
            answer(clientCertificateData=pair.certificate.decode(), clientKeyData=pair.key.decode())
        )
    )
    assert await credentials.headers() == {}
    assert credentials.client_certificate() == pair
    assert credentials.version == 1


async def test_concurrent_requests_run_a_program_once(tmp_path: Path) -> None:
    runs = tmp_path / "runs.log"
    credentials = ExecCredentials(plugin(answer(token="abc"), env={"RUNS": str(runs)}))

    answers = await asyncio.gather(*(credentials.headers() for _ in range(5)))

    assert answers == [{"Authorization": "Bearer abc"}] * 5
    assert runs.read_text() == "run\n"


async def test_a_program_runs_again_when_its_credential_expires(tmp_path: Path) -> None:
    runs, now = tmp_path / "runs.log", [NOON]
    script = answer(token="abc", expirationTimestamp="2026-11-21T13:00:00Z")
    credentials = ExecCredentials(plugin(script, env={"RUNS": str(runs)}), now=lambda: now[0])

    for now[0] in (NOON, NOON + timedelta(minutes=59), NOON + timedelta(minutes=60)):
        await credentials.headers()

    assert runs.read_text() == "run\n" * 2


async def test_a_program_runs_again_when_the_server_rejects_its_credential(tmp_path: Path) -> None:
    runs, ticks = tmp_path / "runs.log", Ticks()
    credentials = ExecCredentials(
        plugin(answer(token="abc"), env={"RUNS": str(runs)}), monotonic=ticks
    )
    await credentials.headers()

    assert credentials.rejected()  # a request that was sent before the answer came
    await credentials.headers()
    assert runs.read_text() == "run\n"

    ticks.seconds += 5
    assert credentials.rejected()
    await credentials.headers()
    assert runs.read_text() == "run\n" * 2


async def test_a_program_gets_the_configured_cluster_info() -> None:
    script = (
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = info['kind'], info['spec']['interactive'], info['spec']['cluster']['server'],"
        " os.environ['EXTRA'], sys.stdin.read()\n"
        "print(json.dumps({**info, 'status': {'token': repr(token)}}))"
    )
    credentials = ExecCredentials(
        plugin(script, env={"EXTRA": "more"}, cluster={"server": "https://api"})
    )
    headers = await credentials.headers()
    assert headers["Authorization"] == (
        "Bearer ('ExecCredential', False, 'https://api', 'more', '')"
    )


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("sys.exit(3)", "ended with exit code 3"),
        ("print('hush')", "printed something other than JSON"),
        ("print('[]')", "did not print an ExecCredential"),
        ("print(json.dumps({'kind': 'ExecCredential'}))", "that is not client.auth"),
        (answer(token="hush").replace("status", "state"), "without a status"),
        (answer(), "neither a token nor a client certificate"),
        (answer(clientKeyData="hush"), "only one of client certificate and client key"),
        (answer(token="hush", expirationTimestamp="soon"), "is not RFC 3339"),
        (answer(token="hush").replace('"hush"', '["hush"]'), "a token that is not a string"),
    ],
)
async def test_the_error_about_a_failed_program_does_not_show_its_output(
    script: str, problem: str
) -> None:
    credentials = ExecCredentials(plugin(script))
    with pytest.raises(ConfigurationError) as failure:
        await credentials.headers()
    assert str(failure.value).startswith("config: users[me].user.exec: the command")
    assert problem in str(failure.value)
    assert "hush" not in str(failure.value)


async def test_the_error_about_a_missing_program_has_the_install_hint() -> None:
    credentials = ExecCredentials(
        plugin("", command="no-such-login", install_hint="see https://example.org")
    )
    with pytest.raises(
        ConfigurationError, match=r'"no-such-login" is not installed; see https://example\.org'
    ):
        await credentials.headers()


async def test_a_program_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    (tmp_path / "login").write_text("no program")
    credentials = ExecCredentials(plugin("", command=str(tmp_path / "login")))
    with pytest.raises(ConfigurationError, match='login" cannot be started: Permission denied'):
        await credentials.headers()


async def test_a_program_that_hangs_is_killed() -> None:
    credentials = ExecCredentials(plugin("import time; time.sleep(600)"), timeout=0.2)
    with pytest.raises(ConfigurationError, match=r"gave no answer within 0\.2 seconds"):
        await credentials.headers()


async def test_an_interactive_program_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    credentials = ExecCredentials(plugin(answer(token="abc"), interactive_mode="Always"))
    with pytest.raises(ConfigurationError, match="standard input is not a terminal"):
        await credentials.headers()


@pytest.mark.parametrize("script", ["sys.exit(3)", "print('[]')"])
async def test_a_failed_program_runs_again_only_after_some_seconds(
    tmp_path: Path, script: str
) -> None:
    runs, ticks = tmp_path / "runs.log", Ticks()
    counted = f"open(os.environ['RUNS'], 'a').write('run\\n')\n{script}"
    credentials = ExecCredentials(plugin(counted, env={"RUNS": str(runs)}), monotonic=ticks)

    outcomes = await asyncio.gather(
        *(credentials.headers() for _ in range(10)), return_exceptions=True
    )
    assert {type(outcome) for outcome in outcomes} == {ConfigurationError}
    assert len({str(outcome) for outcome in outcomes}) == 1
    assert runs.read_text() == "run\n"

    ticks.seconds += 5
    with pytest.raises(ConfigurationError):
        await credentials.headers()
    assert runs.read_text() == "run\n" * 2


async def test_a_program_that_succeeds_after_a_failure_is_used(tmp_path: Path) -> None:
    ticks, ready = Ticks(), tmp_path / "ready"
    script = f"os.path.exists({str(ready)!r}) or sys.exit(1)\n{answer(token='abc')}"
    credentials = ExecCredentials(plugin(script), monotonic=ticks)
    with pytest.raises(ConfigurationError):
        await credentials.headers()
    ready.touch()
    ticks.seconds += 5
    assert await credentials.headers() == {"Authorization": "Bearer abc"}
