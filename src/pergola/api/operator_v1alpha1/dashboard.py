"""`spec.virtualCluster.gardener.gardenerDashboard` of a Garden (spec 20 §5.5)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final, Literal

from msgspec import field

from pergola.api.operator_v1alpha1.facets import (
    NOT_EMPTY,
    DnsDomain,
    LocalReference,
    PositiveDuration,
)
from pergola.api.schema.declare import Value, default

GITHUB: Final = "https://api.github.com"

_Text = Annotated[str, NOT_EMPTY]
_Level = Literal["trace", "debug", "info", "warn", "error"]


class DashboardGitHub(Value):
    """Tickets in GitHub that belong to Shoots."""

    organisation: _Text
    """The organisation of the repository."""
    repository: _Text
    """The repository with the tickets."""
    secret_ref: LocalReference
    """The Secret with the credentials."""
    api_url: Annotated[_Text, default(GITHUB)] = field(name="apiURL", default=GITHUB)
    """The URL of GitHub's API."""
    poll_interval: PositiveDuration | None = None
    """The interval between reads of all tickets; no polling if absent."""


class DashboardOidc(Value):
    """Login with OpenID Connect."""

    secret_ref: LocalReference
    """The Secret with the client's ID and secret."""
    client_id_public: _Text | None = field(name="clientIDPublic", default=None)
    """The ID of the client for kubeconfigs."""
    issuer_url: _Text | None = field(name="issuerURL", default=None)
    """The URL of the OpenID provider."""
    session_lifetime: PositiveDuration | None = None
    """The lifetime of a login."""
    additional_scopes: list[str] = []
    """Scopes to request in addition to the default ones."""
    certificate_authority_secret_ref: LocalReference | None = None
    """The Secret with the authorities of the provider's certificate."""


class TerminalContainer(Value):
    """The container of terminals."""

    image: str
    """The image of the container."""
    description: str | None = None
    """The description shown to users."""


class DashboardTerminal(Value):
    """Terminals in the dashboard."""

    container: TerminalContainer
    """The container of terminals."""
    allowed_hosts: list[str] = []
    """Hosts of API servers that terminals may connect to."""


class DashboardIngress(Value):
    """The exposure of the dashboard to users; deprecated."""

    enabled: Annotated[bool, default(value=True)] = True
    """Whether the dashboard is exposed."""


class Dashboard(Value):
    """Settings of the dashboard."""

    enable_token_login: Annotated[bool, default(value=True)] = True
    """Whether users can log in with a token; if not, `oidcConfig` is required."""
    frontend_config_map_ref: LocalReference | None = None
    """The ConfigMap with settings of the user interface."""
    assets_config_map_ref: LocalReference | None = None
    """The ConfigMap with logos and other assets."""
    git_hub: DashboardGitHub | None = None
    """Tickets in GitHub that belong to Shoots."""
    log_level: Annotated[_Level, default("info")] = "info"
    """The lowest level to log."""
    oidc_config: DashboardOidc | None = None
    """Login with OpenID Connect."""
    terminal: DashboardTerminal | None = None
    """Terminals in the dashboard; none if absent."""
    domain: DnsDomain | None = None
    """The host of the dashboard; `dashboard.` plus each ingress domain if absent."""
    tls_secret_name: str | None = None
    """The Secret with the certificate of the dashboard."""
    ingress: DashboardIngress = field(default_factory=DashboardIngress)
    """The exposure of the dashboard to users; deprecated."""
    propagate_ca_from_sni: bool | None = field(name="propagateCAFromSNI", default=None)
    """Whether kubeconfigs contain the authority of the SNI certificate; requires
    `kubeAPIServer.sni`."""
