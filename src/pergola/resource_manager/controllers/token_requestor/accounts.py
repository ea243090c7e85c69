"""The ServiceAccount in the target cluster: as the Secret asks for it, and its tokens."""

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
    """A token that the API server has just issued."""

    token: str
    expires: datetime


class Accounts:
    """The ServiceAccounts of the target cluster.

    Args:
        cache: the uids of those that are watched; the others are read when they are needed.
        audiences: for whom tokens are; the API server's own if empty.
    """

    def __init__(self, client: Client, cache: Caches[str], audiences: tuple[str, ...]) -> None:
        self._client = client
        self._cache = cache
        self._audiences = list(audiences)

    async def has_uid(self, key: Key, uid: str) -> bool:
        """Whether the ServiceAccount is there in this incarnation.

        The watch may lag behind: before it denies, the API server is asked.
        """
        if self._cache.get(key) == uid:
            return True
        try:
            live = await self._client.get(SERVICE_ACCOUNT, key, metadata_only=True)
        except NotFound:
            return False
        return uid_of(live) == uid

    async def apply(self, request: Request) -> None:
        """Creates or corrects the ServiceAccount; what is right already is not written."""
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
        except AlreadyExists:  # another Secret wants the same one at the same time
            return await self._client.get(SERVICE_ACCOUNT, request.account)
        self._cache.observe(created)
        return created

    async def request_token(self, request: Request) -> Issue:
        """A new token.

        Raises:
            Invalid: the API server does not issue such tokens.
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
    """The ServiceAccount as it is created."""
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
    """The ServiceAccount as it should be; None if it is so.

    Labels that others set stay: only those are taken away of which a record on the ServiceAccount
    says that they were set from a Secret (spec 11 §1.4 step 3).
    """
    labels, annotations = dict(labels_of(live)), dict(annotations_of(live))
    wanted = request.labels or {}
    for name in _recorded(annotations.pop(names.LABELS, "")) - wanted.keys():
        labels.pop(name, None)
    labels.update(wanted)
    if wanted:
        annotations[names.LABELS] = _record(wanted)
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
