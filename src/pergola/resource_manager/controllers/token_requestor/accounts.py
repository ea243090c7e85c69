"""The ServiceAccount in the target cluster, as the Secret describes it, and its tokens."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

import orjson

from pergola.api.kinds import SERVICE_ACCOUNT
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    metadata_of,
    uid_of,
)
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.inputs import Request
from pergola.runtime.caching.caches import Caches
from pergola.runtime.controlling.controller import ReconcileError

_AUTOMOUNT: Final = "automountServiceAccountToken"


@dataclass(frozen=True, slots=True)
class Issue:
    """A newly issued token."""

    token: str
    expires: datetime


class Accounts:
    """The ServiceAccounts of the target cluster.

    Args:
        cache: The uids of watched ServiceAccounts; others are read on demand.
        audiences: For issued tokens; the API server's own if empty.
    """

    def __init__(self, client: Client, cache: Caches[str], audiences: tuple[str, ...]) -> None:
        self._client = client
        self._cache = cache
        self._audiences = list(audiences)

    async def has_uid(self, key: Key, uid: str) -> bool:
        """Return whether the ServiceAccount exists with this uid.

        The watch may lag, so before the answer is no, the API server is asked.
        """
        if self._cache.get(key) == uid:
            return True
        try:
            live = await self._client.get(SERVICE_ACCOUNT, key, metadata_only=True)
        except NotFound:
            return False
        return uid_of(live) == uid

    async def apply(self, request: Request) -> None:
        """Create or correct the ServiceAccount; write nothing if it is already right.

        Raises:
            ReconcileError: Its namespace does not exist.
        """
        live = await self._get_or_create(request)
        changed = corrected(live, request)
        if changed is not None:
            self._cache.observe(await self._client.update(changed))

    async def _get_or_create(self, request: Request) -> JsonObject:
        try:
            return await self._client.get(SERVICE_ACCOUNT, request.account)
        except NotFound:
            pass
        try:
            created = await self._client.create(new_account(request))
        except AlreadyExists:  # another Secret requested the same ServiceAccount at the same time
            return await self._client.get(SERVICE_ACCOUNT, request.account)
        except NotFound as error:
            raise ReconcileError(
                f"cannot create ServiceAccount {request.account}: {error}"
            ) from None
        self._cache.observe(created)
        return created

    async def request_token(self, request: Request) -> Issue:
        """Request a new token.

        Raises:
            Invalid: The API server refuses to issue such a token.
        """
        answer = await self._client.create_subresource(
            SERVICE_ACCOUNT,
            request.account,
            "token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {
                    "audiences": self._audiences,
                    "expirationSeconds": request.expiration_seconds,
                },
            },
        )
        status = answer.get("status") or {}
        token, expires = status.get("token"), read_time(status.get("expirationTimestamp"))
        if not isinstance(token, str) or not token or expires is None:
            raise ReconcileError(
                f"the API server answered the TokenRequest for ServiceAccount {request.account} "
                "without a token or its expirationTimestamp"
            )
        return Issue(token, expires)


def new_account(request: Request) -> JsonObject:
    """Return the ServiceAccount to create."""
    metadata: JsonObject = {"namespace": request.account.namespace, "name": request.account.name}
    if request.labels:
        metadata["labels"] = dict(request.labels)
        metadata["annotations"] = {names.LABELS: _record(request.labels)}
    return {
        "apiVersion": SERVICE_ACCOUNT.api_version,
        "kind": SERVICE_ACCOUNT.kind,
        "metadata": metadata,
        _AUTOMOUNT: False,
    }


def corrected(live: JsonObject, request: Request) -> JsonObject | None:
    """Return the ServiceAccount with its corrections, or None if it needs none.

    Labels set by others are kept. A record on the ServiceAccount lists the labels that were set
    from a Secret; only those are removed (spec 11 §1.4 step 3).
    """
    labels, annotations = dict(labels_of(live)), dict(annotations_of(live))
    desired = request.labels or {}
    for name in _recorded(annotations.pop(names.LABELS, "")) - desired.keys():
        labels.pop(name, None)
    labels.update(desired)
    if desired:
        annotations[names.LABELS] = _record(desired)
    is_right = labels == labels_of(live) and annotations == annotations_of(live)
    if is_right and live.get(_AUTOMOUNT) is False:
        return None
    metadata = {**metadata_of(live), "labels": labels, "annotations": annotations}
    return {**live, "metadata": metadata, _AUTOMOUNT: False}


def _record(labels: dict[str, str]) -> str:
    return orjson.dumps(labels, option=orjson.OPT_SORT_KEYS).decode()


def _recorded(text: str) -> set[str]:
    try:
        labels = orjson.loads(text)
    except orjson.JSONDecodeError:
        return set()
    return set(labels) if isinstance(labels, dict) else set()
