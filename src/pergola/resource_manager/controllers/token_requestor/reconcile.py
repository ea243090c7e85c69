"""One Secret: decide whether a new token is due, issue it, and store it (spec 11 §1.4).

Local decisions come first. The Secret is patched with the resourceVersion that was read, so that a
concurrent write by its owner is never lost. After a crash, the next run starts over: a token is due
until the Secret in the source cluster has its renew timestamp.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, labels_of
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.accounts import Accounts
from pergola.resource_manager.controllers.token_requestor.decide import (
    ChangedError,
    Decision,
    Decisions,
)
from pergola.resource_manager.controllers.token_requestor.due import (
    WARN_SHARE,
    renewal_time,
    renews_in,
)
from pergola.resource_manager.controllers.token_requestor.inputs import MistakesError
from pergola.resource_manager.controllers.token_requestor.metrics import TokenMetrics
from pergola.resource_manager.controllers.token_requestor.observe import SeenSecret, observe
from pergola.resource_manager.controllers.token_requestor.pace import BURST, Issued, Pace
from pergola.resource_manager.controllers.token_requestor.place import (
    Credentials,
    data_for,
    kubeconfig_to_fill,
    source_patch,
    target_secret,
    timestamp,
)
from pergola.resource_manager.controllers.token_requestor.review import Reviews
from pergola.resource_manager.controllers.token_requestor.token import (
    TokenFacts,
    digest_of,
    facts_of,
)
from pergola.runtime.caching.caches import Caches
from pergola.runtime.clock import Clock, monotonic
from pergola.runtime.controlling.controller import DONE, Again, Outcome, ReconcileError
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger

log = get_logger("token-requestor")

INVALID: Final = "InvalidTokenRequest"
FAILED: Final = "TokenRenewalFailed"
EXPIRES_SOON: Final = "TokenExpiresSoon"
PACED: Final = "TokenDelayed"
REFUSED_SECONDS: Final = 600.0
"""The pause after an API server rejected a request as invalid: its admission may change."""
_CHANGED_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Parts:
    """The dependencies of the reconciler.

    Attributes:
        secrets: The Secrets of the source cluster that this instance handles.
    """

    source: Client
    target: Client
    secrets: Caches[SeenSecret]
    accounts: Accounts
    reviews: Reviews
    decisions: Decisions
    pace: Pace
    recorder: Recorder
    metrics: TokenMetrics
    clock: Clock
    random: random.Random


class TokenRequestor:
    """The reconciler.

    Args:
        ca: The CA of the target cluster, for Secrets that request it; None if unknown.
    """

    def __init__(self, parts: Parts, resource_class: str, ca: bytes | None) -> None:
        self._parts = parts
        self._resource_class = resource_class
        self._ca = ca
        self._tokens: dict[Key, TokenFacts] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Reconcile one Secret."""
        seen = self._parts.secrets.get(key)
        if seen is None:
            self._forget(key)
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
            self._report(
                seen, INVALID, f"the API server refused the request of the Secret: {error}"
            )
            self._until_it_expires(seen)
            return Again(REFUSED_SECONDS)
        except (Conflict, AlreadyExists):
            raise  # a concurrent write: not an error
        except (KubeError, ReconcileError) as error:
            self._parts.metrics.failed(key)
            self._report(seen, FAILED, f"could not renew the token: {error}; retrying")
            self._until_it_expires(seen)
            raise

    async def _serve(self, seen: SeenSecret) -> Outcome:
        decision = await self._parts.decisions.decide(seen)
        if decision.verdict is None:
            return self._wait(decision)
        seconds = self._parts.pace.wait(seen.key, monotonic(), doubted=_doubted(decision))
        if seconds > 0:
            if _doubted(decision) is None:
                note = (
                    f"{BURST} tokens were issued in short succession; the next one waits for "
                    f"{seconds:.0f} s. Find out what removes or rejects them"
                )
                self._report(seen, PACED, note)
            log.info("token delayed", secret=str(seen.key), why=decision.verdict.why)
            return Again(seconds)
        secret = await self._read(seen.key)
        if secret is None:
            return DONE
        newest = observe(secret)
        if newest.version != seen.version:
            # The watch lags: the newest state may no longer need a token.
            decision = await self._parts.decisions.decide(newest)
        if decision.verdict is None:
            return self._wait(decision)
        return await self._issue(secret, decision)

    def _wait(self, decision: Decision) -> Outcome:
        """Requeue for the renewal, or for the expiry of the token if that is earlier."""
        self._note(decision.seen.key, decision.token)
        until = renewal_time(decision.seen)
        if decision.token is not None and decision.token.expires is not None:
            until = min(until, decision.token.expires)
        return Again((until - self._parts.clock.now()).total_seconds())

    async def _read(self, key: Key) -> JsonObject | None:
        """Return the current Secret, or None if this instance no longer handles it."""
        try:
            secret = await self._parts.source.get(SECRET, key)
        except NotFound:
            return None
        return secret if names.is_relevant(labels_of(secret), self._resource_class) else None

    # Issuing

    async def _issue(self, secret: JsonObject, decision: Decision) -> Outcome:
        """Issue a token into the target cluster's Secret if one is named, else into this one."""
        request, key = decision.request, decision.seen.key
        await self._parts.accounts.apply(request)
        issue = await self._parts.accounts.request_token(request)
        now = self._parts.clock.now()
        seconds = renews_in(issue.expires - now, self._parts.random.random())
        renewal = now + timedelta(seconds=seconds)
        kubeconfig = kubeconfig_to_fill(secret, decision.target)
        ca = self._ca if request.injects_ca else None
        data: JsonObject | None = data_for(Credentials(issue.token, ca, kubeconfig))
        if request.target is not None and data is not None:
            target = target_secret(request.target, decision.target, data)
            await self._apply_target(target, decision.target)
            data = None
        try:
            patch = source_patch(secret, renewal, data)
            patched = await self._parts.source.patch(SECRET, key, patch)
        except NotFound:
            return DONE  # it was deleted in the meantime
        self._issued(key, issue.token.encode(), renewal)
        self._parts.secrets.observe(patched)
        why = decision.verdict.why if decision.verdict else ""
        log.info("token issued", secret=str(key), account=str(request.account), why=why)
        return Again(seconds)

    async def _apply_target(self, secret: JsonObject, live: JsonObject | None) -> None:
        if live is None:
            await self._parts.target.create(secret)
        elif secret != live:
            await self._parts.target.update(secret)

    def _issued(self, key: Key, token: bytes, renewal: datetime) -> None:
        """Record the token; this only saves work."""
        digest, now = digest_of(token), monotonic()
        self._parts.reviews.accepted(key, digest, now)
        self._parts.pace.issued(key, now, Issued(digest, timestamp(renewal)))
        self._note(key, facts_of(token))

    # Reporting

    def _note(self, key: Key, token: TokenFacts | None) -> None:
        if token is not None and token != self._tokens.get(key):
            self._tokens[key] = token
            self._parts.metrics.expose(key, token)

    def _report(self, seen: SeenSecret, reason: str, note: str) -> None:
        regarding = Regarding(SECRET, seen.key, seen.uid, seen.version)
        self._parts.recorder.warning(regarding, reason, note)
        if reason == INVALID:
            log.warning("secret cannot be served", secret=str(seen.key), problem=note)

    def _until_it_expires(self, seen: SeenSecret) -> Outcome:
        """Report a token that expires soon and cannot be renewed, or requeue for that time.

        A failed run is retried with doubling pauses, one of which ends between renewal time and
        expiry.
        """
        token, now = self._tokens.get(seen.key), self._parts.clock.now()
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

    def _forget(self, key: Key) -> None:
        self._parts.metrics.forget(key)
        self._parts.reviews.forget(key)
        self._parts.pace.forget(key)
        self._tokens.pop(key, None)


def _doubted(decision: Decision) -> Issued | None:
    """Return the current token and renewal if only a doubt makes a new token due."""
    verdict, token = decision.verdict, decision.token
    if verdict is None or not verdict.in_doubt or token is None:
        return None
    return Issued(token.digest, decision.seen.annotations.get(names.RENEW, ""))
