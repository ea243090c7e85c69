"""Certificates of Hubble: a Job makes the first ones, a CronJob renews them."""

from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.kube.yaml_writer import dump
from pergola.providers.networking.cilium.render.parts import (
    LINUX,
    NAMESPACE,
    RUNTIME_DEFAULT,
    SYSTEM_COMPONENT,
    SYSTEM_PRIORITY,
    TO_API_SERVER,
    TO_DNS,
    Images,
    app,
    obj,
    requests,
    role,
    rule,
    service_account,
    unprivileged,
)

NAME: Final = "hubble-generate-certs"
AUTHORITY: Final = "cilium-ca"
SERVER: Final = "hubble-server-certs"
RELAY_CLIENT: Final = "hubble-relay-client-certs"
SERVER_NAME: Final = "*.default.hubble-grpc.cilium.io"
RELAY_NAME: Final = "*.hubble-relay.cilium.io"
SCHEDULE: Final = "0 0 1 */4 *"
_VALIDITY: Final = "26280h"  # three years, renewed every four months
_NOBODY: Final = 65532


def certificates(image: Images) -> list[JsonObject]:
    """The Job, the CronJob, and what they may do."""
    secrets = [AUTHORITY, SERVER, RELAY_CLIENT]
    rules = [
        rule("", ["secrets"], ["create"]),
        rule("", ["secrets"], ["get", "update"], secrets),
    ]
    labels = {**app(NAME), **SYSTEM_COMPONENT}
    job: JsonObject = {"backoffLimit": 20, "template": _template(image)}
    return [
        service_account(NAME),
        *role("Role", NAME, NAME, rules),
        obj(
            "batch/v1",
            "Job",
            NAME,
            labels=labels,
            # The template of a Job cannot be changed: a new image needs a new Job.
            annotations={marks.DELETE_ON_INVALID_UPDATE: "true"},
            spec=job,
        ),
        obj(
            "batch/v1",
            "CronJob",
            NAME,
            labels=labels,
            spec={
                "schedule": SCHEDULE,
                "concurrencyPolicy": "Forbid",
                "successfulJobsHistoryLimit": 1,
                "failedJobsHistoryLimit": 1,
                "jobTemplate": {
                    "spec": {**job, "template": _template(image), "ttlSecondsAfterFinished": 1800}
                },
            },
        ),
    ]


def _template(image: Images) -> JsonObject:
    return {
        "metadata": {"labels": {**app(NAME), **SYSTEM_COMPONENT, **TO_API_SERVER, **TO_DNS}},
        "spec": {
            "restartPolicy": "OnFailure",
            "priorityClassName": SYSTEM_PRIORITY,
            "serviceAccountName": NAME,
            "automountServiceAccountToken": True,
            "nodeSelector": LINUX,
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _NOBODY,
                "runAsGroup": _NOBODY,
                "seccompProfile": RUNTIME_DEFAULT,
            },
            "containers": [_container(image)],
        },
    }


def _container(image: Images) -> JsonObject:
    return {
        "name": "certgen",
        "image": image("hubble-certgen"),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/cilium-certgen"],
        "args": [
            "--ca-generate=true",
            "--ca-reuse-secret",
            f"--ca-secret-namespace={NAMESPACE}",
            f"--ca-secret-name={AUTHORITY}",
            "--ca-common-name=Cilium CA",
        ],
        "env": [{"name": "CILIUM_CERTGEN_CONFIG", "value": dump(_wanted())}],
        "resources": requests("10m", "32Mi"),
        "securityContext": unprivileged(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _wanted() -> JsonObject:
    server = _certificate(SERVER, SERVER_NAME, "server auth", "client auth")
    return {"certs": [server, _certificate(RELAY_CLIENT, RELAY_NAME, "client auth")]}


def _certificate(secret: str, name: str, *usages: str) -> JsonObject:
    return {
        "name": secret,
        "namespace": NAMESPACE,
        "commonName": name,
        "hosts": [name],
        "usage": ["signing", "key encipherment", *usages],
        "validity": _VALIDITY,
    }
