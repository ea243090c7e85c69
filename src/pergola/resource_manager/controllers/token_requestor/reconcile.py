"""One Secret: is a new token due, and if so, issue it and put it where it belongs (spec 11 §1.4).

What can be decided without an API server is decided first. The Secret is written with the
resourceVersion in which it was read, so that nothing that its owner writes at the same time is ever
lost. Killed at any point, the next run starts over: a token is due until the Secret in the source
cluster has its renew timestamp.
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
    Decisions,
    Look,
)
from pergola.resource_manager.controllers.token_requestor.due import (
    WARN_SHARE,
    renewal_time,
    renews_in,
)
from pergola.resource_manager.controllers.token_requestor.inputs import MistakesError
from pergola.resource_manager.controllers.token_requestor.metrics import TokenMetrics
from pergola.resource_manager.controllers.token_requestor.observe import SeenSecret, observe
from pergola.resource_manager.controllers.token_requestor.pace import Issued, Pace
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
REFUSED_SECONDS: Final = 600.0
"""Until what an API server refused as invalid is tried again: its admission may have changed."""
_CHANGED_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Parts:
    """What the reconciler works with.

    Attributes:
        secrets: the Secrets of the source cluster that are this instance's.
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
        ca: the CA of the target cluster for those who want it injected; None if it is not known.
    """

    def __init__(self, parts: Parts, resource_class: str, ca: bytes | None) -> None:
        self._parts = parts
        self._resource_class = resource_class
        self._ca = ca
        self._tokens: dict[Key, TokenFacts] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """One run for one Secret."""
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
            self._tell(seen, INVALID, str(error))
            return self._until_it_expires(seen)
        except Invalid as error:
            self._tell(seen, INVALID, f"an API server refuses what the Secret asks for: {error}")
            self._until_it_expires(seen)
            return Again(REFUSED_SECONDS)
        except (Conflict, AlreadyExists):
            raise  # somebody else wrote at the same time: nothing went wrong
        except (KubeError, ReconcileError) as error:
            self._parts.metrics.failed(key)
            self._tell(seen, FAILED, f"could not renew the token: {error}; this is tried again")
            self._until_it_expires(seen)
            raise

    async def _serve(self, seen: SeenSecret) -> Outcome:
        look = await self._parts.decisions.look(seen)
        if look.verdict is None:
            return self._wait(look)
        seconds = self._parts.pace.wait(seen.key, monotonic(), doubted=_doubted(look))
        if seconds > 0:
            log.info("no new token yet", secret=str(seen.key), why=look.verdict.why)
            return Again(seconds)
        secret = await self._read(seen.key)
        if secret is None:
            return DONE
        newest = observe(secret)
        if newest.version != seen.version:
            # The watch lags behind: what it will tell may say that no token is due any more.
            look = await self._parts.decisions.look(newest)
        return self._wait(look) if look.verdict is None else await self._issue(secret, look)

    def _wait(self, look: Look) -> Outcome:
        """Nothing is due: come back for the renewal, or when the token ends if that is earlier."""
        self._note(look.seen.key, look.token)
        until = renewal_time(look.seen)
        if look.token is not None and look.token.expires is not None:
            until = min(until, look.token.expires)
        return Again((until - self._parts.clock.now()).total_seconds())

    async def _read(self, key: Key) -> JsonObject | None:
        """The Secret as it is now; None if it is gone, or not this instance's any more."""
        try:
            secret = await self._parts.source.get(SECRET, key)
        except NotFound:
            return None
        return secret if names.is_relevant(labels_of(secret), self._resource_class) else None

    # Issuing

    async def _issue(self, secret: JsonObject, look: Look) -> Outcome:
        """A new token, into the target cluster's Secret if there is to be one, else into ours."""
        request, key = look.request, look.seen.key
        await self._parts.accounts.apply(request)
        issue = await self._parts.accounts.request_token(request)
        now = self._parts.clock.now()
        seconds = renews_in(issue.expires - now, self._parts.random.random())
        renewal = now + timedelta(seconds=seconds)
        kubeconfig = kubeconfig_to_fill(secret, look.target)
        ca = self._ca if request.injects_ca else None
        data: JsonObject | None = data_for(Credentials(issue.token, ca, kubeconfig))
        if request.target is not None and data is not None:
            await self._put(target_secret(request.target, look.target, data), look.target)
            data = None
        try:
            patch = source_patch(secret, renewal, data)
            patched = await self._parts.source.patch(SECRET, key, patch)
        except NotFound:
            return DONE  # deleted meanwhile; nobody waits for the token
        self._issued(key, issue.token.encode(), renewal)
        self._parts.secrets.observe(patched)
        why = look.verdict.why if look.verdict else ""
        log.info("token issued", secret=str(key), account=str(request.account), why=why)
        return Again(seconds)

    async def _put(self, secret: JsonObject, live: JsonObject | None) -> None:
        if live is None:
            await self._parts.target.create(secret)
        elif secret != live:
            await self._parts.target.update(secret)

    def _issued(self, key: Key, token: bytes, renewal: datetime) -> None:
        """What is remembered of a token only saves work; nothing depends on it."""
        digest, now = digest_of(token), monotonic()
        self._parts.reviews.believe(key, digest, now)
        self._parts.pace.issued(key, now, Issued(digest, timestamp(renewal)))
        self._note(key, facts_of(token))

    # Telling

    def _note(self, key: Key, token: TokenFacts | None) -> None:
        if token is not None and token != self._tokens.get(key):
            self._tokens[key] = token
            self._parts.metrics.show(key, token)

    def _tell(self, seen: SeenSecret, reason: str, note: str) -> None:
        regarding = Regarding(SECRET, seen.key, seen.uid, seen.version)
        self._parts.recorder.warning(regarding, reason, note)
        if reason == INVALID:
            log.warning("secret cannot be served", secret=str(seen.key), problem=note)

    def _until_it_expires(self, seen: SeenSecret) -> Outcome:
        """Says so if a token that cannot be renewed soon expires; else comes back to say it then.

        A run that failed comes back by itself in time: the pauses double, so that one of them ends
        between the renewal and the end of the token's life.
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
            self._tell(seen, EXPIRES_SOON, note)
            return DONE
        late = token.expires - WARN_SHARE * (token.expires - token.issued)
        return Again((late - now).total_seconds() + 1.0)

    def _forget(self, key: Key) -> None:
        self._parts.metrics.forget(key)
        self._parts.reviews.forget(key)
        self._parts.pace.forget(key)
        self._tokens.pop(key, None)


def _doubted(look: Look) -> Issued | None:
    """The present token and renewal, if all that speaks against them is a doubt."""
    if look.verdict is None or not look.verdict.in_doubt or look.token is None:
        return None
    return Issued(look.token.digest, look.seen.annotations.get(names.RENEW, ""))
