"""The TokenRequestor, assembled."""

import random
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import SECRET, SERVICE_ACCOUNT
from pergola.api.objects import Key, uid_of
from pergola.kube.client import Client
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.accounts import Accounts
from pergola.resource_manager.controllers.token_requestor.decide import Decisions
from pergola.resource_manager.controllers.token_requestor.metrics import TokenMetrics
from pergola.resource_manager.controllers.token_requestor.observe import SeenSecret, observe
from pergola.resource_manager.controllers.token_requestor.pace import Pace
from pergola.resource_manager.controllers.token_requestor.reconcile import Parts, TokenRequestor
from pergola.resource_manager.controllers.token_requestor.review import Reviews
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import Workers
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics

NAME: Final = "token-requestor"
DEADLINE_SECONDS: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one instance (spec 11 §1.3).

    Attributes:
        resource_class: Serve only Secrets of this class; `*` for all.
        source_namespaces: The namespaces to watch Secrets in; all if empty.
        target_namespaces: The namespaces to watch ServiceAccounts in; all if empty. Others are read
            on demand.
        audiences: For issued tokens; the target API server's own if empty.
        fixed_namespace: The namespace of all ServiceAccounts; empty if each Secret names its own.
        ca_bundle: The CA of the target cluster, PEM; None if unknown.
        minimum_interval: The seconds before a mere doubt causes another token for the same Secret,
            in which a Secret never gets more than five.
    """

    workers: int = 5
    resource_class: str = names.DEFAULT_CLASS
    source_namespaces: Collection[str] = ()
    target_namespaces: Collection[str] = ()
    audiences: tuple[str, ...] = ("gardener",)
    fixed_namespace: str = ""
    ca_bundle: bytes | None = None
    minimum_interval: float = 60.0


def token_requestor(
    source: Client,
    target: Client,
    settings: Settings,
    *,
    metrics: Metrics,
    clock: Clock | None = None,
    random_source: random.Random | None = None,
) -> Unit:
    """Return the controller that requests tokens in the target cluster for Secrets of the source.

    Args:
        random_source: Spreads renewals over time.
    """
    clock = clock or SystemClock()
    secrets = Caches(
        source,
        SECRET,
        observe,
        namespaces=settings.source_namespaces,
        labels=names.selector(settings.resource_class),
    )
    watched = Caches(
        target,
        SERVICE_ACCOUNT,
        uid_of,
        namespaces=(settings.fixed_namespace,)
        if settings.fixed_namespace
        else settings.target_namespaces,
        metadata_only=True,
    )
    recorder = Recorder(source, NAME, clock=clock)
    accounts = Accounts(target, watched, settings.audiences)
    reviews = Reviews(target, settings.audiences)
    parts = Parts(
        source=source,
        target=target,
        secrets=secrets,
        accounts=accounts,
        reviews=reviews,
        decisions=Decisions(
            source,
            target,
            accounts,
            reviews,
            clock,
            fixed_namespace=settings.fixed_namespace,
            ca=settings.ca_bundle,
        ),
        pace=Pace(settings.minimum_interval),
        recorder=recorder,
        metrics=TokenMetrics(metrics, clock),
        clock=clock,
        random=random_source or random.Random(),  # noqa: S311 - it spreads load, it protects nothing
    )
    reconciler = TokenRequestor(parts, settings.resource_class, settings.ca_bundle)
    controller: Workers[Key] = Workers(
        NAME,
        reconciler.reconcile,
        workers=settings.workers,
        metrics=metrics,
        deadline=DEADLINE_SECONDS,
    )
    _wire(controller, secrets, watched, settings.fixed_namespace)
    return Unit(caches=(*secrets, *watched), controllers=(controller,), tasks=(recorder.run,))


def _wire(
    controller: Workers[Key],
    secrets: Caches[SeenSecret],
    accounts: Caches[str],
    fixed_namespace: str,
) -> None:
    """Enqueue a Secret when it changes, and when its ServiceAccount is recreated.

    The deletion of a ServiceAccount triggers nothing: when a component is removed, its
    ServiceAccount is deleted first and must not be recreated.
    """

    def account_of(_: Key, secret: SeenSecret) -> tuple[Key]:
        namespace = fixed_namespace or secret.annotations.get(names.NAMESPACE, "")
        return (Key(namespace, secret.annotations.get(names.NAME, "")),)

    by_account = Index(secrets, account_of)

    def account_changed(change: Change[str]) -> None:
        if change.new is not None and change.new != change.old and not change.initial:
            for key in by_account.keys(change.key):
                controller.queue.add(key)

    secrets.subscribe(lambda change: controller.queue.add(change.key))
    accounts.subscribe(account_changed)
