"""The audit policy of an API server, and the webhook that receives its audit log."""

import base64
from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.api.operator_v1alpha1.api_server import AuditWebhook
from pergola.bundle import make_unique
from pergola.garden.components.api_server.part import (
    ApiServer,
    Part,
    mounted_config_map,
    mounted_secret,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import manifest

WEBHOOK_KUBECONFIG: Final = "kubeconfig.yaml"
"""The key of Secrets with the kubeconfig of a webhook that an API server calls."""

_NOTHING: Final[JsonObject] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "None"}],
}
_POLICY_KEY: Final = "audit-policy.yaml"
_POLICY_PATH: Final = "/etc/kubernetes/audit"
_WEBHOOK_PATH: Final = "/etc/kubernetes/webhook/audit"


def audit(landscape: Landscape, server: ApiServer) -> Part:
    """Return the audit policy, which records nothing by default, and the audit webhook, if any.

    Raises:
        ReferenceMissing: An object that the settings name does not exist or lacks its key.
    """
    policy = _policy(landscape, server)
    config_map = make_unique(
        manifest(
            "v1",
            "ConfigMap",
            server.audit_policy,
            namespace=NAMESPACE,
            data={_POLICY_KEY: policy or dump(_NOTHING)},
        )
    )
    found = mounted_config_map("audit-policy-config", _POLICY_PATH, name_of(config_map))
    found += Part(
        args=(f"--audit-policy-file={_POLICY_PATH}/{_POLICY_KEY}",), objects=(config_map,)
    )
    webhook = server.settings.audit_webhook
    return found + _webhook(landscape, server, webhook) if policy and webhook else found


def _policy(landscape: Landscape, server: ApiServer) -> str:
    config = server.settings.audit_config
    reference = config.audit_policy.config_map_ref if config and config.audit_policy else None
    if reference is None or not reference.name:
        return ""
    return landscape.referenced_value("ConfigMap", reference.name, "policy").decode()


def _webhook(landscape: Landscape, server: ApiServer, webhook: AuditWebhook) -> Part:
    secret = webhook_kubeconfig(
        landscape, f"{server.name}-audit-webhook-kubeconfig", webhook.kubeconfig_secret_name
    )
    files = mounted_secret(
        "audit-webhook-kubeconfig", _WEBHOOK_PATH, name_of(secret), read_only=True
    )
    return files + Part(args=tuple(_webhook_flags(webhook)), objects=(secret,))


def _webhook_flags(webhook: AuditWebhook) -> Iterator[str]:
    yield f"--audit-webhook-config-file={_WEBHOOK_PATH}/{WEBHOOK_KUBECONFIG}"
    yield f"--audit-webhook-batch-max-size={webhook.batch_max_size}"
    yield f"--audit-webhook-version={webhook.version}"


def webhook_kubeconfig(landscape: Landscape, name: str, source: str) -> JsonObject:
    """Return the Secret with the kubeconfig of a webhook that an API server calls.

    Args:
        name: The name of the new Secret, without the checksum.
        source: The Secret that the Garden names.

    Raises:
        ReferenceMissing: The Secret does not exist or has no key `kubeconfig`.
    """
    content = landscape.referenced_value("Secret", source, "kubeconfig")
    data = {WEBHOOK_KUBECONFIG: base64.b64encode(content).decode()}
    secret = manifest("v1", "Secret", name, namespace=NAMESPACE, type="Opaque", data=data)
    return make_unique(secret)
