"""Certificates of Hubble: a Job issues the first ones, a CronJob renews them."""

from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.kube.yaml_writer import dump
from pergola.manifests import (
    KUBE_SYSTEM,
    LINUX,
    SYSTEM_PRIORITY,
    Images,
    account,
    env,
    non_root,
    requests,
    restricted,
    role,
    rule,
    service_account,
)
from pergola.manifests.labels import SYSTEM_COMPONENT, TO_API_SERVER, TO_DNS
from pergola.providers.networking.cilium.render.pods import PART_OF, app, in_kube_system

NAME: Final = "hubble-generate-certs"
AUTHORITY: Final = "cilium-ca"
SERVER: Final = "hubble-server-certs"
RELAY_CLIENT: Final = "hubble-relay-client-certs"
SERVER_NAME: Final = "*.default.hubble-grpc.cilium.io"
RELAY_NAME: Final = "*.hubble-relay.cilium.io"
SCHEDULE: Final = "0 0 1 */4 *"
_VALIDITY: Final = "26280h"  # three years, renewed every four months
_USER: Final = 65532


def certificates(image: Images) -> list[JsonObject]:
    """Return the Job, the CronJob and their permissions."""
    secrets = [AUTHORITY, SERVER, RELAY_CLIENT]
    rules = [
        rule("", ["secrets"], ["create"]),
        rule("", ["secrets"], ["get", "update"], secrets),
    ]
    labels = {**app(NAME), **SYSTEM_COMPONENT}
    job: JsonObject = {"backoffLimit": 20, "template": _template(image)}
    return [
        service_account(NAME, KUBE_SYSTEM),
        *role(NAME, KUBE_SYSTEM, rules, account(NAME, KUBE_SYSTEM), labels=PART_OF),
        in_kube_system(
            "batch/v1",
            "Job",
            NAME,
            labels=labels,
            # The template of a Job cannot be changed: a new image needs a new Job.
            annotations={marks.DELETE_ON_INVALID_UPDATE: "true"},
            spec=job,
        ),
        in_kube_system(
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
            "securityContext": non_root(_USER),
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
            f"--ca-secret-namespace={KUBE_SYSTEM}",
            f"--ca-secret-name={AUTHORITY}",
            "--ca-common-name=Cilium CA",
        ],
        "env": env(CILIUM_CERTGEN_CONFIG=dump(_desired())),
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": restricted(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _desired() -> JsonObject:
    server = _certificate(SERVER, SERVER_NAME, "server auth", "client auth")
    return {"certs": [server, _certificate(RELAY_CLIENT, RELAY_NAME, "client auth")]}


def _certificate(secret: str, name: str, *usages: str) -> JsonObject:
    return {
        "name": secret,
        "namespace": KUBE_SYSTEM,
        "commonName": name,
        "hosts": [name],
        "usage": ["signing", "key encipherment", *usages],
        "validity": _VALIDITY,
    }
