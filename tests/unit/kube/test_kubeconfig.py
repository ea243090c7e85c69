import base64
import json
import ssl
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pergola.api.objects import JsonObject
from pergola.kube import kubeconfig
from pergola.kube.errors import ConfigurationError
from pergola.kube.kubeconfig import in_cluster, load, ssl_context

Write = Callable[..., Path]


@pytest.fixture(scope="module")
def pair() -> tuple[bytes, bytes]:
    """Return a self-signed certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "me")])
    start = datetime(2026, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    return (
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a kubeconfig with one cluster, user and context."""

    def write(
        *,
        user: JsonObject | None = None,
        cluster: JsonObject | None = None,
        context: JsonObject | None = None,
        name: str = "config",
        **top: object,
    ) -> Path:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [
                {"name": "c", "cluster": {"server": "https://api:6443", **(cluster or {})}}
            ],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [
                {"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}
            ],
            **top,
        }
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(orjson.dumps(content))
        return path

    return write


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


# -- sources of the configuration


def test_an_explicit_file_takes_precedence_over_the_environment(write: Write) -> None:
    named = write(name="named", cluster={"server": "https://named"})
    other = write(name="other", cluster={"server": "https://other"})
    assert load(named, environ={"KUBECONFIG": str(other)}).server == "https://named"
    assert load(None, environ={"KUBECONFIG": str(other)}).server == "https://other"


def test_the_default_is_the_file_in_the_home_folder(write: Write, tmp_path: Path) -> None:
    write(name=".kube/config", cluster={"server": "https://home"})
    assert load(environ={"HOME": str(tmp_path)}).server == "https://home"


def test_a_pod_uses_the_in_cluster_configuration(tmp_path: Path) -> None:
    for name, text in {"token": "abc", "ca.crt": "CA", "namespace": "garden\n"}.items():
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}

    config = in_cluster(environ=environ, folder=tmp_path)

    assert (config.server, config.ca) == ("https://10.0.0.1:443", b"CA")
    assert (config.namespace, config.context) == ("garden", "in-cluster")
    environ["KUBERNETES_SERVICE_HOST"] = "fd00::1"
    assert in_cluster(environ=environ, folder=tmp_path).server == "https://[fd00::1]:443"


def test_the_error_about_a_pod_without_a_token_names_the_missing_file(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("CA")
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(ConfigurationError, match=f"{tmp_path}/token cannot be read"):
        in_cluster(environ=environ, folder=tmp_path)


def test_there_is_no_in_cluster_configuration_outside_a_pod() -> None:
    with pytest.raises(ConfigurationError, match="this is not a pod"):
        in_cluster(environ={})


def test_the_error_about_a_missing_configuration_lists_all_sources(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no cluster is configured: pass a kubeconfig"):
        load(environ={"HOME": str(tmp_path)})


def test_the_pod_s_account_is_used_if_no_file_exists(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = load(write(cluster={"server": "https://pod"}))
    monkeypatch.setattr(kubeconfig, "in_cluster", lambda **_: pod)
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert load(environ=environ) is pod


# -- merging


def test_an_entry_is_taken_from_the_first_file_that_has_it(write: Write, tmp_path: Path) -> None:
    first = write(name="first", cluster={"server": "https://first"}, **{"current-context": ""})
    second = write(
        name="second",
        cluster={"server": "https://second", "tls-server-name": "second"},
        users=[{"name": "v", "user": {}}],
    )
    missing = tmp_path / "missing"

    config = load(environ={"KUBECONFIG": f"{missing}:{first}::{second}"})

    assert (config.server, config.tls_server_name) == ("https://first", None)
    assert config.context == "here"  # which only the second file sets


def test_at_least_one_of_several_files_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="a cannot be read: no such file"):
        load(environ={"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})


def test_paths_are_relative_to_their_file(write: Write, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "ca.crt").write_text("CA")
    path = write(name="sub/config", cluster={"certificate-authority": "ca.crt"})
    assert load(path).ca == b"CA"


# -- fields


def test_a_context_can_be_chosen(write: Write) -> None:
    path = write(
        contexts=[
            {"name": "here", "context": {"cluster": "c"}},
            {"name": "there", "context": {"cluster": "c", "namespace": "garden"}},
        ]
    )
    assert (load(path).context, load(path).namespace) == ("here", "default")
    assert (load(path, "there").context, load(path, "there").namespace) == ("there", "garden")


def test_all_fields_of_a_cluster_are_read(write: Write) -> None:
    config = load(
        write(
            cluster={
                "server": "https://api/path/",
                "certificate-authority": "ignored",
                "certificate-authority-data": b64(b"CA"),
                "tls-server-name": "kubernetes",
                "proxy-url": "http://proxy:3128",
            }
        )
    )
    assert config.server == "https://api/path"
    assert (config.ca, config.insecure) == (b"CA", False)
    assert (config.tls_server_name, config.proxy_url) == ("kubernetes", "http://proxy:3128")


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({}, {}),
        ({"token": "abc"}, {"Authorization": "Bearer abc"}),
        ({"tokenFile": "token", "token": "abc"}, {"Authorization": "Bearer from file"}),
        ({"username": "a", "password": "b"}, {"Authorization": "Basic YTpi"}),
        (
            {"token": "abc", "as": "jane", "as-uid": "1", "as-groups": ["ops"]},
            {
                "Authorization": "Bearer abc",
                "Impersonate-User": "jane",
                "Impersonate-Uid": "1",
                "Impersonate-Group": "ops",
            },
        ),
    ],
)
async def test_all_kinds_of_user_credentials_are_read(
    write: Write, tmp_path: Path, user: JsonObject, headers: dict[str, str]
) -> None:
    (tmp_path / "token").write_text("from file")
    assert await load(write(user=user)).credentials.headers() == headers


async def test_all_groups_but_empty_ones_are_impersonated(write: Write) -> None:
    user: JsonObject = {"token": "abc", "as": "jane", "as-groups": ["ops", "", "dev"]}
    headers = await load(write(user=user)).credentials.headers()

    groups = [value for name, value in headers.items() if name == "Impersonate-Group"]
    assert groups == ["ops", "dev"]


@pytest.mark.parametrize("data", [("certificate",), ("key",), ("certificate", "key"), ()])
def test_certificate_and_key_may_be_data_or_files(
    write: Write, tmp_path: Path, pair: tuple[bytes, bytes], data: tuple[str, ...]
) -> None:
    user = {}
    for name, content in zip(("certificate", "key"), pair, strict=True):
        (tmp_path / name).write_bytes(content)
        user[f"client-{name}"] = name
        if name in data:
            user |= {f"client-{name}": "missing", f"client-{name}-data": b64(content)}

    certificate = load(write(user=user)).credentials.client_certificate()

    assert certificate is not None
    assert (certificate.certificate, certificate.key) == pair


async def test_an_exec_plugin_is_run_as_configured(write: Write, tmp_path: Path) -> None:
    script = tmp_path / "login"
    script.write_text(
        f"#!{sys.executable} -SE\n"
        "import json, os, sys\n"
        "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
        "token = [sys.argv[1:], os.environ['A'], info['spec']['cluster']]\n"
        "print(json.dumps({**info, 'status': {'token': json.dumps(token)}}))\n"
    )
    script.chmod(0o700)
    path = write(
        user={
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "command": "./login",
                "args": ["--now"],
                "env": [{"name": "A", "value": "B"}],
                "provideClusterInfo": True,
                "interactiveMode": "Never",
            }
        },
        cluster={
            "certificate-authority-data": b64(b"CA"),
            "extensions": [
                {"name": "other", "extension": 1},
                {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
            ],
        },
    )

    headers = await load(path).credentials.headers()

    assert json.loads(headers["Authorization"].removeprefix("Bearer ")) == [
        ["--now"],
        "B",
        {
            "server": "https://api:6443",
            "certificate-authority-data": b64(b"CA"),
            "config": {"audience": "x"},
        },
    ]


# -- errors, which name file and field


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"current-context": ""}, "current-context is not set; name one of the contexts (here)"),
        ({"current-context": "gone"}, 'context "gone" does not exist (here)'),
        ({"current-context": 1}, "current-context must be a string"),
        ({"contexts": {}}, 'context "here" does not exist (there are no contexts)'),
        ({"contexts": "x"}, "contexts must be a list"),
        ({"contexts": [{"name": "here", "context": 1}]}, "contexts[here].context must be a map"),
        ({"contexts": [{"name": "here"}]}, "contexts[here].context.cluster is missing"),
        ({"clusters": []}, 'contexts[here].context.cluster names "c", which does not exist (there'),
        ({"users": [{"name": "v"}]}, 'contexts[here].context.user names "u", which does not exist'),
        ({"users": [{"name": "u"}] * 2}, 'users[1].name "u" is not unique'),
        ({"users": [{"user": {}}]}, "users[0].name is missing"),
        ({"cluster": {"server": ""}}, "clusters[c].cluster.server is missing"),
        (
            {"cluster": {"server": "ftp://x"}},
            "clusters[c].cluster.server is not an http or https URL",
        ),
        (
            {"cluster": {"certificate-authority-data": "*"}},
            "clusters[c].cluster.certificate-authority-data is not valid base64",
        ),
        (
            {"cluster": {"certificate-authority": "gone.crt"}},
            "clusters[c].cluster.certificate-authority:",
        ),
        (
            {"cluster": {"insecure-skip-tls-verify": "yes"}},
            "clusters[c].cluster.insecure-skip-tls-verify must be true or false",
        ),
        (
            {"cluster": {"insecure-skip-tls-verify": True, "certificate-authority-data": "YQ=="}},
            "clusters[c].cluster.certificate-authority contradicts insecure-skip-tls-verify",
        ),
        ({"cluster": {"proxy-url": "socks5://x"}}, "clusters[c].cluster.proxy-url is not an http"),
        ({"user": {"token": ["hush"]}}, "users[u].user.token must be a string"),
        ({"user": {"tokenFile": "gone"}}, "gone cannot be read: no such file"),
        ({"user": {"username": "a", "token": "hush"}}, "users[u].user.username contradicts"),
        ({"user": {"client-key-data": "aHVzaA=="}}, "users[u].user.client-certificate is missing"),
        (
            {"user": {"client-key-data": "aHVzaA==", "client-certificate-data": "aHVzaA=="}},
            "users[u].user: client certificate and key are not a matching",
        ),
        (
            {"user": {"auth-provider": {"name": "gcp"}}},
            "users[u].user.auth-provider is no longer supp",
        ),
        ({"user": {"as-groups": ["a"]}}, "users[u].user.as is missing"),
        ({"user": {"as-groups": "a"}}, "users[u].user.as-groups must be a list of strings"),
        ({"user": {"as-user-extra": {"a": []}}}, "users[u].user.as-user-extra is not supported"),
        ({"user": {"exec": "x"}}, "users[u].user.exec must be a map"),
        ({"user": {"exec": {"command": "x"}}}, "users[u].user.exec.apiVersion must be client.auth"),
    ],
)
def test_invalid_configurations_are_refused_with_file_and_field(
    write: Write, changes: JsonObject, problem: str
) -> None:
    path = write(**changes)
    with pytest.raises(ConfigurationError) as failure:
        load(path)
    assert problem in str(failure.value)
    assert str(path.parent) in str(failure.value)
    assert "hush" not in str(failure.value)
    assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"command": ""}, "exec.command is missing"),
        ({"args": [1]}, "exec.args must be a list of strings"),
        ({"env": ["A=B"]}, "exec.env must be a list of maps"),
        ({"env": [{"name": "A", "value": 1}]}, "exec.env[0].value must be a string"),
        ({"interactiveMode": "Maybe"}, "exec.interactiveMode must be Never, IfAvailable, Always"),
    ],
)
def test_an_exec_plugin_that_cannot_run_is_refused(
    write: Write, spec: JsonObject, problem: str
) -> None:
    working = {"apiVersion": "client.authentication.k8s.io/v1", "command": "login"}
    with pytest.raises(ConfigurationError) as failure:
        load(write(user={"exec": working | spec}))
    assert f"users[u].user.{problem}" in str(failure.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"[]", "must be a map"), (b"\xff\xfe\x00", "UTF-8"), (b"a: [", "config: "), (b"", "not set")],
)
def test_a_file_that_is_not_a_kubeconfig_is_refused(
    tmp_path: Path, content: bytes, problem: str
) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=problem) as failure:
        load(path)
    assert str(path) in str(failure.value)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the kubeconfig .*/gone cannot be read: no such"):
        load(tmp_path / "gone")


@pytest.mark.parametrize(
    "field",
    [
        {"client-certificate": "tls.crt"},
        {"client-key": "tls.key"},
        {"as": "jane"},
        {"as-uid": "1"},
        {"as-groups": ["a"]},
        {"as-user-extra": {"a": ["b"]}},
        {"auth-provider": {"name": "oidc"}},
        {"exec": {"command": "login"}},
    ],
)
def test_a_restricted_user_needs_no_program_and_no_other_identity(
    write: Write, field: JsonObject
) -> None:
    with pytest.raises(ConfigurationError) as failure:
        load(write(user={"token": "hush", **field}), restricted=True)
    assert f"users[u].user has {next(iter(field))}, which" in str(failure.value)
    assert "hush" not in str(failure.value)


async def test_a_restricted_user_may_have_a_token_file_or_certificate_data(
    write: Write, tmp_path: Path, pair: tuple[bytes, bytes]
) -> None:
    (tmp_path / "token").write_text("abc")
    user = {
        "tokenFile": "token",
        "client-certificate-data": b64(pair[0]),
        "client-key-data": b64(pair[1]),
    }
    credentials = load(write(user=user), restricted=True).credentials
    assert await credentials.headers() == {"Authorization": "Bearer abc"}
    assert credentials.client_certificate() is not None


# -- TLS


def test_only_the_named_authority_is_trusted(write: Write, pair: tuple[bytes, bytes]) -> None:
    config = load(write(cluster={"certificate-authority-data": b64(pair[0])}))
    context = ssl_context(config)
    assert len(context.get_ca_certs(binary_form=True)) + context.cert_store_stats()["x509"] == 1
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_an_insecure_server_is_not_verified(write: Write) -> None:
    context = ssl_context(load(write(cluster={"insecure-skip-tls-verify": True})))
    assert context.verify_mode == ssl.CERT_NONE
    assert not context.check_hostname


@pytest.mark.parametrize("ca", [b"no PEM", b"\xff\xff"])
def test_an_authority_that_is_not_a_certificate_is_refused(write: Write, ca: bytes) -> None:
    config = load(write(cluster={"certificate-authority-data": b64(ca)}))
    with pytest.raises(ConfigurationError, match='context "here": the certificate authority'):
        ssl_context(config)


def test_the_secrets_of_a_configuration_are_not_printed(write: Write) -> None:
    assert "hush" not in repr(load(write(user={"token": "hush"})))
