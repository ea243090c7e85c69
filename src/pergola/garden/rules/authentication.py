"""Rules about authentication, authorization and ServiceAccount tokens (spec 21 §7.4.1)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, required, unsupported
from pergola.api.operator_v1alpha1.authentication import OidcConfig
from pergola.api.operator_v1alpha1.kube_api_server import KubeApiServer, ServiceAccountConfig
from pergola.garden.rules.names import check_issuer
from pergola.pki.certificates import read_bundle
from pergola.pki.errors import CertificateError

_SHORTEST: Final = timedelta(hours=720)
_LONGEST: Final = timedelta(hours=2160)
_ALGORITHMS: Final = (
    "ES256",
    "ES384",
    "ES512",
    "PS256",
    "PS384",
    "PS512",
    "RS256",
    "RS384",
    "RS512",
    "none",
)


def check_authentication(server: KubeApiServer, path: str) -> Iterator[Cause]:
    """Yield the findings about authentication and authorization."""
    if server.oidc_config is not None:
        yield from _oidc(server.oidc_config, f"{path}.oidcConfig")
        if server.structured_authentication is not None:
            yield forbidden(f"{path}.oidcConfig", "is incompatible with structuredAuthentication")
    yield from _structured(server, path)


def check_service_accounts(
    config: ServiceAccountConfig | None, unchecked: list[str], path: str
) -> Iterator[Cause]:
    """Yield the findings about tokens of ServiceAccounts.

    Args:
        unchecked: The accepted issuers in the stored Garden; an unchanged list is not checked.
    """
    if config is None:
        return
    if config.max_token_expiration is not None:
        yield from _expiration(config.max_token_expiration, f"{path}.maxTokenExpiration")
    if config.issuer is not None:
        yield from check_issuer(config.issuer, f"{path}.issuer")
    seen: set[str] = set()
    for index, issuer in enumerate(config.accepted_issuers):
        at = f"{path}.acceptedIssuers[{index}]"
        if config.accepted_issuers != unchecked:
            yield from check_issuer(issuer, at)
        if issuer == config.issuer:
            problem = f"acceptedIssuers cannot contain the issuer field value: {issuer}"
            yield invalid(at, issuer, problem)
        elif issuer in seen:
            yield duplicate(at, issuer)
        seen.add(issuer)


def _expiration(expiration: timedelta, path: str) -> Iterator[Cause]:
    if expiration < timedelta():
        yield invalid(path, format_duration(expiration), "can not be negative")
    elif timedelta() < expiration < _SHORTEST:
        yield forbidden(path, "must be at least 720h (30d)")
    elif expiration > _LONGEST:
        yield forbidden(path, "must be at most 2160h (90d)")


def _structured(server: KubeApiServer, path: str) -> Iterator[Cause]:
    authentication, authorization = (
        server.structured_authentication,
        server.structured_authorization,
    )
    if authentication is not None:
        name, at = authentication.config_map_name, f"{path}.structuredAuthentication"
        yield from _configured(server, "StructuredAuthenticationConfiguration", name, at)
    if authorization is not None:
        name, at = authorization.config_map_name, f"{path}.structuredAuthorization"
        yield from _configured(server, "StructuredAuthorizationConfiguration", name, at)
        if name and not authorization.kubeconfigs:
            yield required(
                f"{at}.kubeconfigs",
                "must provide kubeconfig secret references if an authorization config is "
                "configured",
            )
        names = [kubeconfig.authorizer_name for kubeconfig in authorization.kubeconfigs]
        for index, authorizer in enumerate(names):
            if authorizer in names[:index]:
                yield duplicate(f"{at}.kubeconfigs[{index}].authorizerName", authorizer)


def _configured(server: KubeApiServer, gate: str, name: str, path: str) -> Iterator[Cause]:
    if not server.feature_gates.get(gate, True):
        yield forbidden(path, f"requires feature gate {gate} to be enabled")
    if not name:
        yield forbidden(f"{path}.configMapName", "must provide a name")


def _oidc(oidc: OidcConfig, path: str) -> Iterator[Cause]:
    if not oidc.client_id:
        yield required(f"{path}.clientID", "clientID must be set")
    if not oidc.issuer_url:
        yield required(f"{path}.issuerURL", "issuerURL must be set")
    else:
        yield from check_issuer(oidc.issuer_url, f"{path}.issuerURL")
    yield from _oidc_authorities(oidc, path)
    if oidc.client_authentication is not None:
        problem = "for Kubernetes versions >= 1.31, clientAuthentication is no longer supported"
        yield forbidden(f"{path}.clientAuthentication", problem)
    for index, algorithm in enumerate(oidc.signing_algs):
        if algorithm not in _ALGORITHMS:
            yield unsupported(f"{path}.signingAlgs[{index}]", algorithm, _ALGORITHMS)
    claims = {
        "groupsClaim": oidc.groups_claim,
        "groupsPrefix": oidc.groups_prefix,
        "usernameClaim": oidc.username_claim,
        "usernamePrefix": oidc.username_prefix,
    }
    for field, value in claims.items():
        if value == "":
            yield invalid(f"{path}.{field}", value, f"{field} cannot be empty when key is provided")


def _oidc_authorities(oidc: OidcConfig, path: str) -> Iterator[Cause]:
    if oidc.ca_bundle is None:
        return
    try:
        found = read_bundle(oidc.ca_bundle.encode())
    except CertificateError:
        found = []
    if not found:
        problem = "caBundle is not a valid PEM-encoded certificate"
        yield invalid(f"{path}.caBundle", oidc.ca_bundle, problem)
