"""The users of a kubeconfig, and the credentials in their fields."""

import base64
from typing import Final, Literal, cast, get_args

from pergola.api.objects import JsonObject
from pergola.kube.credentials import (
    Anonymous,
    BasicAuth,
    Certificate,
    Combined,
    Credentials,
    Impersonation,
    StaticToken,
    TokenFile,
)
from pergola.kube.errors import ConfigurationError
from pergola.kube.exec_plugin import API_VERSIONS, ExecCredentials, ExecPlugin
from pergola.kube.kubeconfig_file import Entry

_IMPERSONATION: Final = ("as", "as-uid", "as-groups", "as-user-extra")
# Fields that the kubeconfig of a controller's process must not have (spec 10 §13.1).
_RESTRICTED: Final = (
    "client-certificate",
    "client-key",
    *_IMPERSONATION,
    "auth-provider",
    "exec",
)
_EXEC_CONFIG: Final = "client.authentication.k8s.io/exec"


def credentials_of(user: Entry, cluster: Entry, *, restricted: bool = False) -> Credentials:
    """Return the credentials of a user.

    Args:
        user: an entry of the list `users`.
        cluster: the cluster, for exec plugins that request it.
        restricted: refuse files of certificates and keys, impersonation and programs; a token
            file is allowed.

    Raises:
        ConfigurationError: a field is unusable, refused, or contradicts another.
    """
    if restricted:
        _check_restricted(user)
    if user.values.get("auth-provider"):
        raise user.error("auth-provider", "is no longer supported; use an exec plugin")
    parts = [*_impersonation(user), *_certificate(user), *_who(user, cluster)]
    if not parts:
        return Anonymous()
    return parts[0] if len(parts) == 1 else Combined(parts)


def _check_restricted(user: Entry) -> None:
    refused = [name for name in _RESTRICTED if user.values.get(name)]
    if refused:
        raise ConfigurationError(
            f"{user.where()} has {', '.join(refused)}, which a controller may not use;"
            " give it a token, a token file, a user name and password, or"
            " client-certificate-data and client-key-data"
        )


def _who(user: Entry, cluster: Entry) -> list[Credentials]:
    """Return at most one of a token, a password and a program."""
    file, token, name = user.located("tokenFile"), user.text("token"), user.text("username")
    plugin = user.part("exec")
    if name and (file or token):
        raise user.error("username", "contradicts the token: only one can be used")
    if file:
        return [TokenFile(file)]
    if token:
        return [StaticToken(token)]
    if name:
        return [BasicAuth(name, user.text("password"))]
    return [ExecCredentials(_plugin(plugin, cluster))] if plugin else []


def _certificate(user: Entry) -> list[Credentials]:
    certificate, key = user.source("client-certificate"), user.source("client-key")
    if certificate is None and key is None:
        return []
    if certificate is None or key is None:
        missing = "client-certificate" if certificate is None else "client-key"
        raise user.error(missing, "is missing: a client certificate needs its key")
    try:
        return [Certificate(certificate, key)]
    except ConfigurationError as error:
        raise ConfigurationError(f"{user.where()}: {error}") from error


def _impersonation(user: Entry) -> list[Credentials]:
    name, uid = user.text("as"), user.text("as-uid")
    groups = [group for group in user.texts("as-groups") if group]
    if user.values.get("as-user-extra"):
        raise user.error("as-user-extra", "is not supported")
    if not name and (uid or groups):
        raise user.error("as", "is missing: uid and groups alone cannot be impersonated")
    return [Impersonation(name, uid=uid, groups=groups)] if name else []


def _plugin(spec: Entry, cluster: Entry) -> ExecPlugin:
    api_version, command = spec.text("apiVersion"), spec.text("command")
    if api_version not in API_VERSIONS:
        raise spec.error("apiVersion", f"must be {' or '.join(API_VERSIONS)}")
    if not command:
        raise spec.error("command", "is missing")
    # A bare name is looked up in PATH; with a slash, it is a path like any other in the file.
    located = str(spec.file.parent.absolute() / command) if "/" in command else command
    return ExecPlugin(
        where=spec.where(),
        api_version=api_version,
        command=located,
        args=tuple(spec.texts("args")),
        env={item.text("name"): item.text("value") for item in spec.items("env")},
        interactive_mode=_interactive_mode(spec),
        cluster=_cluster_info(cluster) if spec.flag("provideClusterInfo") else None,
        install_hint=spec.text("installHint").strip(),
    )


_Mode = Literal["Never", "IfAvailable", "Always"]


def _interactive_mode(spec: Entry) -> _Mode:
    mode = spec.text("interactiveMode") or "IfAvailable"
    if mode not in get_args(_Mode):
        raise spec.error("interactiveMode", f"must be {', '.join(get_args(_Mode))}")
    return cast("_Mode", mode)


def _cluster_info(cluster: Entry) -> JsonObject:
    """Return the cluster information for KUBERNETES_EXEC_INFO."""
    ca = cluster.content("certificate-authority")
    info: JsonObject = {
        "server": cluster.text("server"),
        "tls-server-name": cluster.text("tls-server-name"),
        "insecure-skip-tls-verify": cluster.flag("insecure-skip-tls-verify"),
        "certificate-authority-data": base64.b64encode(ca).decode() if ca else "",
        "proxy-url": cluster.text("proxy-url"),
        "config": _exec_config(cluster),
    }
    return {name: value for name, value in info.items() if value}


def _exec_config(cluster: Entry) -> object:
    for extension in cluster.items("extensions"):
        if extension.text("name") == _EXEC_CONFIG:
            return extension.values.get("extension")
    return None
