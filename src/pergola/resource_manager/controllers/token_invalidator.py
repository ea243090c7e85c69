"""Selection of the static ServiceAccount tokens to invalidate (spec 11 §2).

The controller only labels Secrets; the webhook of the same name then replaces the token, or removes
the replacement so that a new token is issued. A token stays valid while a pod uses it as a volume,
in a projected volume or as an environment variable.

The Secrets of a ServiceAccount are found by their annotation: Kubernetes has not filled `.secrets`
of ServiceAccounts since 1.24. The content of Secrets is never kept.
"""

from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from pergola.api import marks
from pergola.api.kinds import POD, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    resource_version_of,
)
from pergola.bundle.references import Reference, references
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch, all_of, changed, exists, later
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("token-invalidator")


ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
SKIP: Final = f"token-invalidator.{marks.GROUP}/skip"
CONSIDER: Final = f"token-invalidator.{marks.GROUP}/consider"
PURPOSE: Final = f"{marks.GROUP}/purpose"
PURPOSE_INVALIDATE: Final = "token-invalidator"

DEADLINE_SECONDS: Final = 180.0
_FIRST_CHECK_SECONDS: Final = 1.0
_LONGEST_PAUSE_SECONDS: Final = 1000.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the controller.

    Attributes:
        workers: The number of Secrets to reconcile in parallel.
        namespaces: The namespaces to watch; all if empty.
    """

    workers: int = 5
    namespaces: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class TokenSecret:
    """The facts about a Secret that belongs to a ServiceAccount."""

    account: str
    version: str
    has_purpose: bool
    considered: bool


@dataclass(frozen=True, slots=True)
class Account:
    """The facts about a ServiceAccount."""

    automount: bool | None
    skip: str | None

    @property
    def keeps_tokens(self) -> bool:
        """Whether its static tokens stay valid."""
        return self.skip is not None or self.automount is not False


def token_invalidator(target: Client, settings: Settings, *, metrics: Metrics) -> Unit:
    """Return the controller that labels the Secrets whose tokens to invalidate."""
    secrets: Caches[TokenSecret | None] = Caches(
        target, SECRET, keep_secret, namespaces=settings.namespaces, metadata_only=True
    )
    accounts = Caches(target, SERVICE_ACCOUNT, keep_account, namespaces=settings.namespaces)
    by_account = Index(secrets, _account_keys)
    return Controller(
        "token-invalidator",
        TokenInvalidator(target, secrets, accounts).reconcile,
        watches=[
            Watch(secrets, when=exists),
            Watch(
                accounts,
                to=lambda change: by_account.keys(change.key),
                when=all_of(exists, changed, later),
            ),
        ],
        workers=settings.workers,
        metrics=metrics,
        deadline=DEADLINE_SECONDS,
    )


class TokenInvalidator:
    """The reconciler of Secrets.

    A token in use is checked again after one second, then after doubling intervals up to 1000 s.
    """

    def __init__(
        self, client: Client, secrets: Caches[TokenSecret | None], accounts: Caches[Account]
    ) -> None:
        self._client = client
        self._secrets = secrets
        self._accounts = accounts
        self._checks: dict[Key, int] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Label one Secret, or remove its label."""
        secret = self._secrets.get(key)
        if secret is None:
            self._checks.pop(key, None)
            return DONE
        account = self._accounts.get(Key(key.namespace, secret.account))
        if account is None:
            raise ReconcileError(
                f"could not fetch ServiceAccount: {key.namespace}/{secret.account}, which the"
                f" annotation {ACCOUNT_NAME} of Secret {key} names, does not exist"
            )
        in_use = not (account.keeps_tokens or secret.considered) and await self._is_used(key)
        changes = label_changes(secret, account, in_use=in_use)
        if changes:
            await self._patch(key, secret, changes)
        return self._check_later(key) if in_use else self._settled(key)

    async def _is_used(self, secret: Key) -> bool:
        """Return whether a pod uses the Secret, read live because a cache could miss one."""
        reference = Reference("secret", secret.name)
        async with aclosing(self._client.pages(POD, secret.namespace)) as pages:
            async for page in pages:
                if any(reference in references(pod) for pod in page.items):
                    return True
        return False

    async def _patch(self, key: Key, secret: TokenSecret, changes: dict[str, str | None]) -> None:
        metadata = {"resourceVersion": secret.version, "labels": changes}
        try:
            written = await self._client.patch(SECRET, key, {"metadata": metadata})
        except NotFound:
            return
        self._secrets.observe(written)
        log.info("secret labelled", secret=str(key), labels=sorted(changes))

    def _check_later(self, key: Key) -> Outcome:
        checks = self._checks.get(key, 0)
        self._checks[key] = checks + 1
        if not checks:
            log.info("secret is in use, invalidated later", secret=str(key))
        return Again(min(_FIRST_CHECK_SECONDS * 2.0 ** min(checks, 10), _LONGEST_PAUSE_SECONDS))

    def _settled(self, key: Key) -> Outcome:
        self._checks.pop(key, None)
        return DONE


def label_changes(secret: TokenSecret, account: Account, *, in_use: bool) -> dict[str, str | None]:
    """Return the labels to set, and those to remove (None)."""
    changes: dict[str, str | None] = {}
    if not secret.has_purpose:
        changes[PURPOSE] = PURPOSE_INVALIDATE
    if account.keeps_tokens:
        if secret.considered:
            changes[CONSIDER] = None
    elif not secret.considered and not in_use:
        changes[CONSIDER] = "true"
    return changes


def keep_secret(obj: JsonObject) -> TokenSecret | None:
    """Return the facts about a Secret, or None if it does not belong to a ServiceAccount."""
    account = annotations_of(obj).get(ACCOUNT_NAME)
    if not account:
        return None
    labels = labels_of(obj)
    return TokenSecret(account, resource_version_of(obj), PURPOSE in labels, CONSIDER in labels)


def keep_account(obj: JsonObject) -> Account:
    """Return the facts about a ServiceAccount."""
    return Account(obj.get("automountServiceAccountToken"), labels_of(obj).get(SKIP))


def _account_keys(key: Key, secret: TokenSecret | None) -> Collection[Key]:
    return (Key(key.namespace, secret.account),) if secret else ()
