"""The authentication of the kube-apiserver's users (spec 20 §15.2)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.objects import JsonObject, name_of
from pergola.api.operator_v1alpha1.authentication import OidcConfig
from pergola.bundle import make_unique
from pergola.bundle.versions import Version
from pergola.garden.components.api_server.audit import WEBHOOK_KUBECONFIG, webhook_kubeconfig
from pergola.garden.components.api_server.part import (
    Part,
    mounted_config_map,
    mounted_secret,
)
from pergola.garden.components.referenced_files import referenced_map
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import manifest

_GROUP: Final = "apiserver.config.k8s.io"
_FILE: Final = "config.yaml"
_PATH: Final = "/etc/kubernetes/structured/authentication"
_WEBHOOK_PATH: Final = "/etc/kubernetes/webhook/authentication"
_OIDC_PATH: Final = "/srv/kubernetes/oidc"
_OIDC_FILE: Final = "ca.crt"
# Earlier versions cannot configure anonymous requests in the configuration file.
_ANONYMOUS_SINCE: Final = Version(1, 32)
_STABLE_SINCE: Final = Version(1, 34)


def authentication(landscape: Landscape) -> Part:
    """Return the flags and files for OpenID Connect, webhooks and anonymous requests.

    Raises:
        ReferenceMissing: An object that the settings name does not exist or lacks its key.
        ReferenceMalformed: The configuration is not a YAML map.
    """
    settings = landscape.api_server
    part = _webhook(landscape)
    if settings.oidc_config is not None:
        return part + _anonymous(landscape) + _oidc(settings.oidc_config)
    if settings.structured_authentication is None and landscape.version < _ANONYMOUS_SINCE:
        return part + _anonymous(landscape)
    return part + _structured(landscape)


def _anonymous(landscape: Landscape) -> Part:
    allowed = landscape.api_server.enable_anonymous_authentication or False
    return Part(args=(f"--anonymous-auth={str(allowed).lower()}",))


def _structured(landscape: Landscape) -> Part:
    config = _configuration(landscape)
    config_map = make_unique(
        manifest(
            "v1",
            "ConfigMap",
            "kube-apiserver-authentication-config",
            namespace=NAMESPACE,
            data={_FILE: dump(config)},
        )
    )
    files = mounted_config_map("authentication-config", _PATH, name_of(config_map))
    args = [f"--authentication-config={_PATH}/{_FILE}"]
    if landscape.version < _ANONYMOUS_SINCE:
        files += _anonymous(landscape)
    return files + Part(args=tuple(args), objects=(config_map,))


def _configuration(landscape: Landscape) -> JsonObject:
    settings = landscape.api_server
    version = "v1" if landscape.version >= _STABLE_SINCE else "v1beta1"
    config: JsonObject = {
        "apiVersion": f"{_GROUP}/{version}",
        "kind": "AuthenticationConfiguration",
    }
    if settings.structured_authentication is not None:
        name = settings.structured_authentication.config_map_name
        config |= referenced_map(landscape, name, _FILE)
    if landscape.version >= _ANONYMOUS_SINCE and "anonymous" not in config:
        allowed = settings.enable_anonymous_authentication or False
        config["anonymous"] = {"enabled": allowed}
    return config


def _webhook(landscape: Landscape) -> Part:
    settings = landscape.api_server.authentication
    webhook = settings.webhook if settings is not None else None
    if webhook is None:
        return Part()
    secret = webhook_kubeconfig(
        landscape,
        "kube-apiserver-authentication-webhook-kubeconfig",
        webhook.kubeconfig_secret_name,
    )
    args = [f"--authentication-token-webhook-config-file={_WEBHOOK_PATH}/{WEBHOOK_KUBECONFIG}"]
    if webhook.cache_ttl is not None:
        ttl = format_duration(webhook.cache_ttl)
        args.append(f"--authentication-token-webhook-cache-ttl={ttl}")
    if webhook.version:
        args.append(f"--authentication-token-webhook-version={webhook.version}")
    files = mounted_secret(
        "authentication-webhook-kubeconfig", _WEBHOOK_PATH, name_of(secret), read_only=True
    )
    return files + Part(args=tuple(args), objects=(secret,))


def _oidc(config: OidcConfig) -> Part:
    args = tuple(_oidc_flags(config))
    if config.ca_bundle is None:
        return Part(args=args)
    config_map = make_unique(
        manifest(
            "v1",
            "ConfigMap",
            "kube-apiserver-oidc-cabundle",
            namespace=NAMESPACE,
            data={_OIDC_FILE: config.ca_bundle},
        )
    )
    files = mounted_config_map("oidc-cabundle", _OIDC_PATH, name_of(config_map))
    authority = f"--oidc-ca-file={_OIDC_PATH}/{_OIDC_FILE}"
    return files + Part(args=(*args, authority), objects=(config_map,))


def _oidc_flags(config: OidcConfig) -> Iterator[str]:
    flags = {
        "issuer-url": config.issuer_url,
        "client-id": config.client_id,
        "username-claim": config.username_claim,
        "username-prefix": config.username_prefix,
        "groups-claim": config.groups_claim,
        "groups-prefix": config.groups_prefix,
        "signing-algs": ",".join(config.signing_algs) or None,
    }
    yield from (f"--oidc-{name}={value}" for name, value in flags.items() if value is not None)
    for claim, value in sorted(config.required_claims.items()):
        yield f"--oidc-required-claim={claim}={value}"
