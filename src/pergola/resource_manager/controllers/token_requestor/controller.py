"""The controller `token-requestor`: decide whether a token is due, issue and store it (spec 11 §1).

Local decisions come first. The Secret is patched with the resourceVersion that was read, so that a
concurrent write by its owner is never lost. After a crash, the next run starts over: a token is due
until the Secret in the source cluster has its renew timestamp.
"""

import random
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.kinds import SECRET, SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key, labels_of, map_at, uid_of
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from pergola.resource_manager.controllers.token_requestor import desired, names
from pergola.resource_manager.controllers.token_requestor.decide import (
    ChangedError,
    Decision,
    Decisions,
    renewal_time,
    renews_in,
)
from pergola.resource_manager.controllers.token_requestor.inputs import (
    MistakesError,
    Request,
    Settings,
)
from pergola.resource_manager.controllers.token_requestor.memory import (
    BURST,
    Issued,
    Known,
    TokenMetrics,
)
from pergola.resource_manager.controllers.token_requestor.observe import (
    SeenSecret,
    TokenFacts,
    digest_of,
    facts_of,
    observe,
)
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.clock import Clock, SystemClock, monotonic
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch, all_of, changed, exists, later
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

NAME: Final = "token-requestor"
log = get_logger(NAME)

INVALID: Final = "InvalidTokenRequest"
FAILED: Final = "TokenRenewalFailed"
EXPIRES_SOON: Final = "TokenExpiresSoon"
PACED: Final = "TokenDelayed"
WARN_SHARE: Final = 0.1
"""A token whose remaining share of its lifetime is below this needs attention."""
REFUSED_SECONDS: Final = 600.0
"""The pause after an API server rejected a request as invalid: its admission may change."""
DEADLINE_SECONDS: Final = 180.0
_CHANGED_SECONDS: Final = 0.1


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

    The deletion of a ServiceAccount triggers nothing: when a component is removed, its
    ServiceAccount is deleted first and must not be recreated.

    Args:
        random_source: Spreads renewals over time.
    """
    spread = random_source or random.Random()  # noqa: S311 - it spreads load, it protects nothing
    requestor = TokenRequestor(source, target, settings, metrics, clock or SystemClock(), spread)

    def account_of(_: Key, secret: SeenSecret) -> tuple[Key]:
        namespace = settings.fixed_namespace or secret.annotations.get(names.NAMESPACE, "")
        return (Key(namespace, secret.annotations.get(names.NAME, "")),)

    by_account = Index(requestor.secrets, account_of)
    return Controller(
        NAME,
        requestor.reconcile,
        watches=[
            Watch(requestor.secrets),
            Watch(
                requestor.accounts,
                to=lambda change: by_account.keys(change.key),
                when=all_of(exists, changed, later),
            ),
        ],
        workers=settings.workers,
        metrics=metrics,
        deadline=DEADLINE_SECONDS,
        tasks=[requestor.recorder.run],
    )


class TokenRequestor:
    """The reconciler.

    Args:
        random: Spreads renewals over time.

    Attributes:
        secrets: The Secrets of the source cluster that this instance handles.
        accounts: The uids of ServiceAccounts in the watched namespaces.
        recorder: Sends the Events about Secrets.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        settings: Settings,
        metrics: Metrics,
        clock: Clock,
        random: random.Random,
    ) -> None:
        self._source = source
        self._target = target
        self._settings = settings
        self._metrics = metrics.register(TokenMetrics)
        self._clock = clock
        self._random = random
        self._known: defaultdict[Key, Known] = defaultdict(Known)
        self.secrets = Caches(
            source,
            SECRET,
            observe,
            namespaces=settings.source_namespaces,
            labels=names.selector(settings.resource_class),
        )
        fixed = settings.fixed_namespace
        self.accounts = Caches(
            target,
            SERVICE_ACCOUNT,
            uid_of,
            namespaces=(fixed,) if fixed else settings.target_namespaces,
            metadata_only=True,
        )
        self.recorder = Recorder(source, NAME, clock=clock, creates_only=True)
        self._decisions = Decisions(source, target, settings, self.accounts, clock)

    async def reconcile(self, key: Key) -> Outcome:
        """Reconcile one Secret."""
        seen = self.secrets.get(key)
        if seen is None:
            self._metrics.forget(key)
            self._known.pop(key, None)
            return DONE
        self._note(key, seen.holding.token)
        try:
            return await self._serve(seen)
        except ChangedError:
            return Again(_CHANGED_SECONDS)
        except MistakesError as error:
            self._report(seen, INVALID, str(error))
            return self._until_it_expires(seen)
        except Invalid as error:
            note = f"the API server refused the request of the Secret: {error}"
            self._report(seen, INVALID, note)
            self._until_it_expires(seen)
            return Again(REFUSED_SECONDS)
        except (Conflict, AlreadyExists):
            raise  # a concurrent write: not an error
        except (KubeError, ReconcileError) as error:
            self._metrics.failed(key)
            self._report(seen, FAILED, f"could not renew the token: {error}; retrying")
            self._until_it_expires(seen)
            raise

    async def _serve(self, seen: SeenSecret) -> Outcome:
        known = self._known[seen.key]
        decision = await self._decisions.decide(seen, known)
        if decision.verdict is None:
            return self._wait(decision)
        doubted = _doubted(decision)
        seconds = known.wait(self._settings.minimum_interval, monotonic(), doubted=doubted)
        if seconds > 0:
            if doubted is None:
                note = (
                    f"{BURST} tokens were issued in short succession; the next one waits for "
                    f"{seconds:.0f} s. Find out what removes or rejects them"
                )
                self._report(seen, PACED, note)
            log.info("token delayed", secret=str(seen.key), why=decision.verdict.why)
            return Again(seconds)
        secret = await self._source.find(SECRET, seen.key)
        resource_class = self._settings.resource_class
        if secret is None or not names.is_relevant(labels_of(secret), resource_class):
            return DONE  # this instance no longer handles it
        newest = observe(secret)
        if newest.version != seen.version:
            # The watch lags: the newest state may no longer need a token.
            decision = await self._decisions.decide(newest, known)
        if decision.verdict is None:
            return self._wait(decision)
        return await self._issue(secret, decision, decision.verdict.why)

    def _wait(self, decision: Decision) -> Outcome:
        """Requeue for the renewal, or for the expiry of the token if that is earlier."""
        self._note(decision.seen.key, decision.token)
        until = renewal_time(decision.seen)
        if decision.token is not None and decision.token.expires is not None:
            until = min(until, decision.token.expires)
        return Again((until - self._clock.now()).total_seconds())

    # Issuing

    async def _issue(self, secret: JsonObject, decision: Decision, why: str) -> Outcome:
        """Issue a token into the target cluster's Secret if one is named, else into this one."""
        request, key = decision.request, decision.seen.key
        await self._apply_account(request)
        token, expires = await self._request_token(request)
        now = self._clock.now()
        seconds = renews_in(expires - now, self._random.random())
        renewal = timestamp(now + timedelta(seconds=seconds))
        ca = self._settings.ca_bundle if request.injects_ca else None
        data: JsonObject | None = desired.data_for(
            token, ca, desired.kubeconfig_to_fill(secret, decision.target)
        )
        if request.target is not None and data is not None:
            target = desired.target_secret(request.target, decision.target, data)
            if decision.target is None:
                await self._target.create(target)
            elif target != decision.target:
                await self._target.update(target)
            data = None
        try:
            patch = desired.source_patch(secret, renewal, data)
            patched = await self._source.patch(SECRET, key, patch)
        except NotFound:
            return DONE  # it was deleted in the meantime
        issued = Issued(digest_of(token.encode()), renewal)
        self._known[key].issued(issued, monotonic())
        self._note(key, facts_of(token.encode()))
        self.secrets.observe(patched)
        log.info("token issued", secret=str(key), account=str(request.account), why=why)
        return Again(seconds)

    async def _apply_account(self, request: Request) -> None:
        """Create or correct the ServiceAccount; write nothing if it is already right.

        Raises:
            ReconcileError: Its namespace does not exist.
        """
        live = await self._target.find(SERVICE_ACCOUNT, request.account)
        if live is None:
            try:
                live = await self._target.create(desired.new_account(request))
                self.accounts.observe(live)
            except AlreadyExists:  # another Secret requested it at the same time
                live = await self._target.get(SERVICE_ACCOUNT, request.account)
            except NotFound as error:
                raise ReconcileError(
                    f"cannot create ServiceAccount {request.account}: {error}"
                ) from None
        right = desired.corrected(live, request)
        if right is not None:
            self.accounts.observe(await self._target.update(right))

    async def _request_token(self, request: Request) -> tuple[str, datetime]:
        """Request a new token; return it with its expiry.

        Raises:
            Invalid: The API server refuses to issue such a token.
        """
        spec = {
            "audiences": list(self._settings.audiences),
            "expirationSeconds": request.expiration_seconds,
        }
        answer = await self._target.create_subresource(
            SERVICE_ACCOUNT,
            request.account,
            "token",
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
        )
        status = map_at(answer, "status")
        token, expires = status.get("token"), read_time(status.get("expirationTimestamp"))
        if not isinstance(token, str) or not token or expires is None:
            raise ReconcileError(
                f"the API server answered the TokenRequest for ServiceAccount {request.account} "
                "without a token or its expirationTimestamp"
            )
        return token, expires

    # Reporting

    def _note(self, key: Key, token: TokenFacts | None) -> None:
        known = self._known[key]
        if token is not None and token != known.token:
            known.token = token
            if token.expires is not None:
                self._metrics.expose(key, token.expires, self._clock)

    def _report(self, seen: SeenSecret, reason: str, note: str) -> None:
        regarding = Regarding(SECRET, seen.key, seen.uid, seen.version)
        self.recorder.warning(regarding, reason, note)
        if reason == INVALID:
            log.warning("secret cannot be served", secret=str(seen.key), problem=note)

    def _until_it_expires(self, seen: SeenSecret) -> Outcome:
        """Report a token that expires soon and cannot be renewed, or requeue for that time.

        A failed run is retried with doubling pauses, one of which ends between renewal time and
        expiry.
        """
        token, now = self._known[seen.key].token, self._clock.now()
        share = token.remaining_share(now) if token is not None else None
        if token is None or token.issued is None or token.expires is None or share is None:
            return DONE
        if share < WARN_SHARE:
            note = (
                f"less than {WARN_SHARE:.0%} of the token's lifetime is left, and it could not be "
                f"renewed: it expires at {timestamp(token.expires)}"
            )
            self._report(seen, EXPIRES_SOON, note)
            return DONE
        late = token.expires - WARN_SHARE * (token.expires - token.issued)
        return Again((late - now).total_seconds() + 1.0)


def _doubted(decision: Decision) -> Issued | None:
    """Return the current token and renewal if only a doubt makes a new token due."""
    verdict, token = decision.verdict, decision.token
    if verdict is None or not verdict.in_doubt or token is None:
        return None
    return Issued(token.digest, decision.seen.annotations.get(names.RENEW, ""))
