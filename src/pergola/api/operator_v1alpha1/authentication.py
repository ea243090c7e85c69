"""Authentication and authorization of a kube-apiserver's users (spec 20 §5.4)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import field

from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, PositiveDuration
from pergola.api.schema.declare import Value, default

_WebhookVersion = Literal["v1alpha1", "v1beta1", "v1"]


class AuthenticationWebhook(Value):
    """A webhook that authenticates tokens."""

    kubeconfig_secret_name: Annotated[str, NOT_EMPTY]
    """The Secret with the kubeconfig of the webhook."""
    cache_ttl: PositiveDuration | None = field(name="cacheTTL", default=None)
    """The lifetime of cached answers."""
    version: Annotated[_WebhookVersion, default("v1beta1")] = "v1beta1"
    """The API version of the requests."""


class Authentication(Value):
    """The authentication of users."""

    webhook: AuthenticationWebhook | None = None
    """A webhook that authenticates tokens."""


class OidcClientAuthentication(Value):
    """The authentication of clients with the OpenID provider."""

    extra_config: dict[str, str] = {}
    """Additional settings of clients."""
    secret: str | None = None
    """The client's secret."""


class OidcConfig(Value):
    """An OpenID provider; superseded by `structuredAuthentication`, which excludes it."""

    ca_bundle: str | None = None
    """The authorities of the provider's certificate, in PEM."""
    client_authentication: OidcClientAuthentication | None = None
    """The authentication of clients with the provider."""
    client_id: str | None = field(name="clientID", default=None)
    """The audience that tokens must have."""
    groups_claim: str | None = None
    """The claim with the groups of a user."""
    groups_prefix: str | None = None
    """The prefix of group names."""
    issuer_url: str | None = field(name="issuerURL", default=None)
    """The URL of the provider."""
    required_claims: dict[str, str] = {}
    """Claims that tokens must have, with their values."""
    signing_algs: list[str] = []
    """The accepted signature algorithms."""
    username_claim: str | None = None
    """The claim with the name of a user."""
    username_prefix: str | None = None
    """The prefix of user names."""


class StructuredAuthentication(Value):
    """Structured authentication, configured in Kubernetes' own format."""

    config_map_name: str
    """The ConfigMap with the configuration under the key `config.yaml`."""


class AuthorizerKubeconfig(Value):
    """The kubeconfig of a webhook that authorizes requests."""

    authorizer_name: str
    """The name of the webhook in the configuration."""
    secret_name: str
    """The Secret with the kubeconfig."""


class StructuredAuthorization(Value):
    """Structured authorization, configured in Kubernetes' own format."""

    config_map_name: str
    """The ConfigMap with the configuration under the key `config.yaml`."""
    kubeconfigs: list[AuthorizerKubeconfig]
    """The kubeconfigs of the webhooks in the configuration."""
