"""The configuration file of the dashboard, and the options of its login page."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.api.operator_v1alpha1.dashboard import (
    DashboardGitHub,
    DashboardOidc,
    DashboardTerminal,
)
from pergola.garden.components.gardener_dashboard.settings import (
    PORT,
    TERMINAL_ADMIN,
    api_server_authority,
    api_server_url,
    dashboard_of,
    hosts,
)
from pergola.garden.components.referenced_files import referenced_map
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.manifests import KUBE_SYSTEM
from pergola.pki import CertificateError, read_bundle

TLS_PATH: Final = "/etc/gardener-dashboard/secrets/tls"

_FRONTEND_KEY: Final = "frontend-config.yaml"
_LOGIN_FIELDS: Final = ("landingPageUrl", "branding", "themes")
_SCOPES: Final = ("openid", "email")
_SESSION: Final = timedelta(hours=12)
_POLLING: Final = timedelta(minutes=15)
_READINESS_SECONDS: Final = 10


def configuration(landscape: Landscape) -> JsonObject:
    """Return the configuration file.

    Raises:
        ReferenceMissing: An object that the settings name does not exist or lacks its key.
        OperatorError: The content of such an object is invalid.
    """
    settings = dashboard_of(landscape)
    config: JsonObject = {
        "port": PORT,
        "logFormat": "text",
        "logLevel": settings.log_level,
        "apiServerUrl": api_server_url(landscape),
        "maxRequestBodySize": "500kb",
        "readinessProbe": {"periodSeconds": _READINESS_SECONDS},
        "tls": {"certFile": f"{TLS_PATH}/tls.crt", "privateKeyFile": f"{TLS_PATH}/tls.key"},
        "unreachableSeeds": {"matchLabels": {"seed.gardener.cloud/network": "private"}},
        "websocketAllowedOrigins": [f"https://{host}" for host in hosts(landscape)],
    }
    optional = {
        "apiServerCaData": api_server_authority(landscape),
        "frontend": _frontend(landscape),
        "oidc": _oidc(landscape, settings.oidc_config) if settings.oidc_config else None,
        "gitHub": _github(landscape, settings.git_hub) if settings.git_hub else None,
        **(_terminal(landscape, settings.terminal) if settings.terminal else {}),
    }
    return config | {name: value for name, value in optional.items() if value}


def login(landscape: Landscape) -> JsonObject:
    """Return the configuration of the login page; the first login type is the default."""
    settings = dashboard_of(landscape)
    types = {"oidc": settings.oidc_config is not None, "token": settings.enable_token_login}
    frontend = frontend_settings(landscape)
    shown: JsonObject = {field: frontend[field] for field in _LOGIN_FIELDS if field in frontend}
    return {"loginTypes": [name for name, is_on in types.items() if is_on], **shown}


def frontend_settings(landscape: Landscape) -> JsonObject:
    """Return the user interface settings from the ConfigMap that the Garden names, if any.

    Raises:
        ReferenceMissing: The ConfigMap does not exist or lacks the key.
        ReferenceMalformed: The settings are not a YAML map.
    """
    reference = dashboard_of(landscape).frontend_config_map_ref
    if reference is None or not reference.name:
        return {}
    return referenced_map(landscape, reference.name, _FRONTEND_KEY, may_be_empty=True)


def _frontend(landscape: Landscape) -> JsonObject:
    found = frontend_settings(landscape)
    if dashboard_of(landscape).terminal is None:
        return found
    return {**found, "features": {**map_at(found, "features"), "terminalEnabled": True}}


def _terminal(landscape: Landscape, terminal: DashboardTerminal) -> JsonObject:
    container = terminal.container
    description = {"image": "/.*/", "description": container.description or ""}
    account = {"name": TERMINAL_ADMIN, "namespace": KUBE_SYSTEM}
    return {
        "contentSecurityPolicy": {"connectSrc": _connections(terminal.allowed_hosts)},
        "terminal": {
            "container": {"image": container.image},
            "containerImageDescriptions": [description],
            "gardenTerminalHost": {"seedRef": landscape.terminal_seed},
            "garden": {"operatorCredentials": {"serviceAccountRef": account}},
        },
    }


def _connections(allowed: Sequence[str]) -> list[str]:
    return ["'self'", *(f"{scheme}://{host}" for host in allowed for scheme in ("wss", "https"))]


def _oidc(landscape: Landscape, oidc: DashboardOidc) -> JsonObject:
    """Return the OpenID client; the API server's settings fill in omitted fields."""
    server = landscape.api_server.oidc_config
    config: JsonObject = {
        "issuer": oidc.issuer_url or (server.issuer_url if server else None) or "",
        "sessionLifetime": int((oidc.session_lifetime or _SESSION).total_seconds()),
        "redirect_uris": [f"https://{host}/auth/callback" for host in hosts(landscape)],
        "scope": " ".join((*_SCOPES, *oidc.additional_scopes)),
        "rejectUnauthorized": True,
        "public": {
            "clientId": oidc.client_id_public or (server.client_id if server else None) or "",
            "usePKCE": True,
        },
    }
    reference = oidc.certificate_authority_secret_ref
    if reference is not None and reference.name:
        config["ca"] = _authority(landscape, reference.name)
    return config


def _authority(landscape: Landscape, secret: str) -> str:
    content = landscape.referenced_value("Secret", secret, "ca.crt")
    try:
        found = read_bundle(content)
    except CertificateError:
        found = []
    if not found:
        raise OperatorError(
            f"Secret garden/{secret}: ca.crt has no certificate: put the authority of the OpenID"
            " provider there, in PEM"
        )
    return content.decode()


def _github(landscape: Landscape, github: DashboardGitHub) -> JsonObject:
    """Return the repository of tickets; webhooks of GitHub make polling optional."""
    is_notified = "webhookSecret" in landscape.referenced("Secret", github.secret_ref.name or "")
    interval = github.poll_interval or (None if is_notified else _POLLING)
    config: JsonObject = {
        "apiUrl": github.api_url,
        "org": github.organisation,
        "repository": github.repository,
        "syncThrottleSeconds": 20,
        "syncConcurrency": 10,
    }
    if interval is not None:
        config["pollIntervalSeconds"] = int(interval.total_seconds())
    return config
