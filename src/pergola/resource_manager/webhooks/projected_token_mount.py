"""Mounting of an expiring token into pods whose ServiceAccount mounts none (spec 12 §5)."""

import re
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed, denied
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import JsonObject, Key
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.kube.errors import KubeError
from pergola.resource_manager.webhooks.decoding import (
    Undecodable,
    flag_in,
    map_in,
    maps_in,
    text_in,
)
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.edits import appended, verdict
from pergola.resource_manager.webhooks.installation import Installation, absent
from pergola.resource_manager.webhooks.subjects import PODS, refused

NAME: Final = "projected-token-mount.resources.gardener.cloud"
PATH: Final = "/webhooks/mount-projected-service-account-token"
SKIP: Final = "projected-token-mount.resources.gardener.cloud/skip"
EXPIRATION: Final = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
DEFAULT_EXPIRATION_SECONDS: Final = 43200
VOLUME: Final = "kube-api-access-gardener"
MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

_PREFIX: Final = "kube-api-access-"
_INTEGER: Final = re.compile(r"[+-]?[0-9]+")
_MOUNT: Final[JsonObject] = {"name": VOLUME, "mountPath": MOUNT_PATH, "readOnly": True}

MountsToken: TypeAlias = Callable[[Key], Awaitable[bool]]
"""Returns whether a ServiceAccount mounts its token into pods; raises KubeError."""


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: creation of pods."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(PODS.rule,),
            namespace_selector=installation.namespaces(),
            object_selector=installation.pods(absent(SKIP)),
        )
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    seconds = config.projected_token_mount.expiration_seconds
    if seconds is None:
        seconds = DEFAULT_EXPIRATION_SECONDS
    lookups = dependencies.lookups
    handler = ProjectedTokenMount(lookups.mounts_token, seconds, known=lookups.known_mount)
    return sharing(handler, registrations(dependencies.installation))


class ProjectedTokenMount:
    """The handler.

    Args:
        mounts_token: called once for each pod with a ServiceAccount other than `default`.
        expiration_seconds: of the tokens of pods without an annotation.
        known: returns the result of `mounts_token` without waiting; None if it has to wait.
    """

    def __init__(
        self,
        mounts_token: MountsToken,
        expiration_seconds: int = DEFAULT_EXPIRATION_SECONDS,
        *,
        known: Callable[[Key], bool | None] = lambda _: None,
    ) -> None:
        self._mounts_token = mounts_token
        self._known = known
        self._expiration = expiration_seconds

    async def __call__(self, request: Request) -> Verdict:
        """Mount a token into all containers except ephemeral ones."""
        return await PODS.answer_later(request, lambda pod: self._decide(pod, request.namespace))

    def at_once(self, request: Request) -> Verdict | None:
        """Decide at once if the ServiceAccount is known; else return None."""
        if not isinstance(request.object, dict):
            return None
        try:
            account = _account_of(request.object, request.namespace)
        except Undecodable:
            return None
        mounts = self._known(account) if account is not None else False
        if mounts is None:
            return None
        return PODS.answer(request, lambda pod: self._decided(pod, account, mounts_token=mounts))

    async def _decide(self, pod: JsonObject, namespace: str) -> Verdict:
        account = _account_of(pod, namespace)
        mounts_token = False
        if account is not None:
            try:
                mounts_token = await self._mounts_token(account)
            except KubeError as error:
                text = f"projected-token-mount: cannot read ServiceAccount {account}"
                return refused(error, text)
        return self._decided(pod, account, mounts_token=mounts_token)

    def _decided(self, pod: JsonObject, account: Key | None, *, mounts_token: bool) -> Verdict:
        if account is None:
            return allowed(because="the pod has no ServiceAccount of its own")
        if mounts_token:
            return allowed(because=f"ServiceAccount {account} mounts its token itself")
        return self._mount(pod, f"ServiceAccount {account} does not mount its token itself")

    def _mount(self, pod: JsonObject, because: str) -> Verdict:
        if flag_in(pod, "spec", "automountServiceAccountToken") is False:
            return allowed(because="the pod opts out: automountServiceAccountToken is false")
        for index, volume in enumerate(maps_in(pod, "spec", "volumes")):
            if text_in(pod, "spec", "volumes", index, "name").startswith(_PREFIX):
                return allowed(because=f"the volume {volume['name']} already contains a token")
        expiration = self._expiration_of(pod)
        if expiration is None:
            return denied(
                f"projected-token-mount: the value of the pod's annotation {EXPIRATION} is not a "
                f'whole number of seconds: "{text_in(pod, "metadata", "annotations", EXPIRATION)}"'
            )
        return _mounted(pod, expiration, because)

    def _expiration_of(self, pod: JsonObject) -> int | None:
        """Return the seconds, or None if the annotation is not a 64-bit integer."""
        if EXPIRATION not in map_in(pod, "metadata", "annotations"):
            return self._expiration
        text = text_in(pod, "metadata", "annotations", EXPIRATION)
        # Check the length first: Python refuses to parse thousands of digits.
        if not _INTEGER.fullmatch(text) or len(text) > 100:
            return None
        seconds = int(text)
        return seconds if -(2**63) <= seconds < 2**63 else None


def _account_of(pod: JsonObject, namespace: str) -> Key | None:
    """Return the ServiceAccount of a pod; None if it is the default one."""
    name = text_in(pod, "spec", "serviceAccountName")
    return None if name in ("", "default") else Key(namespace, name)


def _mounted(pod: JsonObject, expiration: int, because: str) -> Verdict:
    edits = []
    is_mounted = False
    for kind in ("initContainers", "containers"):
        for index in range(len(maps_in(pod, "spec", kind))):
            mounts = maps_in(pod, "spec", kind, index, "volumeMounts")
            is_mounted |= any(mount.get("name") == VOLUME for mount in mounts)
            if not any(_is_there(mount.get("mountPath")) for mount in mounts):
                at = f"/spec/{kind}/{index}/volumeMounts"
                edits.append(appended(at, mounts, _MOUNT, because))
    if edits or is_mounted:
        volumes = maps_in(pod, "spec", "volumes")
        edits.append(appended("/spec/volumes", volumes, _volume(expiration), because))
    return verdict(edits, f"all containers already mount something at {MOUNT_PATH}")


def _is_there(path: object) -> bool:
    return isinstance(path, str) and path.rstrip("/") == MOUNT_PATH


def _volume(expiration: int) -> JsonObject:
    namespace = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": expiration, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {"downwardAPI": {"items": [{"fieldRef": namespace, "path": "namespace"}]}},
    ]
    return {"name": VOLUME, "projected": {"defaultMode": 0o644, "sources": sources}}
