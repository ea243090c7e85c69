"""The decision whether a Secret needs a new token (spec 11 §1.4 step 2).

The original sends a TokenReview for each token in every run (rule 2.5). Here, a token that this
process issued or reviewed is not reviewed again for a while, because the events that end a token
are detected in other ways:

| event                                 | how it shows                                         |
| ------------------------------------- | ---------------------------------------------------- |
| it expired                            | its `exp` claim                                      |
| its ServiceAccount was deleted or     | its uid claim and the uid of the ServiceAccount,     |
| recreated, or it is of another one    | which is watched; a mismatch is confirmed by a read  |
| it was replaced or changed            | its digest differs: a review                         |
| it is older than this process         | it is unknown: a review                              |
| it is opaque, or names no uid         | a review                                             |
| the signing keys were rotated         | a review after an hour; a rotation also removes the  |
|                                       | renew timestamps, which takes effect at once (§1.7)  |
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pergola.api.kinds import SECRET, SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key, map_at, uid_of
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.inputs import (
    Mistake,
    MistakesError,
    Request,
    Settings,
    kubeconfig_mistakes,
    read_request,
)
from pergola.resource_manager.controllers.token_requestor.memory import Known
from pergola.resource_manager.controllers.token_requestor.observe import (
    Holding,
    SeenSecret,
    TokenFacts,
    digest_of,
    holding_of,
    token_of,
)
from pergola.runtime.caching.caches import Caches
from pergola.runtime.clock import Clock, monotonic
from pergola.runtime.controlling.controller import ReconcileError

_RENEWAL_SHARE: Final = 0.8
_RENEWAL_SPREAD: Final = 0.05
_LONGEST_LIFE: Final = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Due:
    """A new token is due.

    Attributes:
        why: For the log.
        in_doubt: Whether the token may still be good, because clocks differ or the server does not
            know its audiences. A token that was just issued is then kept for a while.
    """

    why: str
    in_doubt: bool = False


REQUESTED: Final = Due("the renew timestamp is absent")
NO_TARGET: Final = Due("the target Secret does not exist")
NO_TOKEN: Final = Due("the token is missing")
TO_MOVE: Final = Due("the token or kubeconfig has to move to the target Secret")
OTHER_CA: Final = Due("the stored CA is not the one of the target cluster")
EXPIRED: Final = Due("the token has expired", in_doubt=True)
OTHER_ACCOUNT: Final = Due("the token belongs to another ServiceAccount")
REJECTED: Final = Due("the API server does not accept the token", in_doubt=True)
OVERDUE: Final = Due("the renew timestamp has passed", in_doubt=True)


class ChangedError(Exception):
    """The Secret changed during the evaluation, which must start over."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of one evaluation.

    Attributes:
        target: The Secret in the target cluster that holds the token; None if it does not exist
            yet, or if the source Secret holds the token.
        token: The current token.
        verdict: The reason why a new token is due; None if none is.
    """

    seen: SeenSecret
    request: Request
    target: JsonObject | None
    token: TokenFacts | None
    verdict: Due | None


class Decisions:
    """Decides for the Secrets of one instance without writing anything.

    Args:
        accounts: The uids of watched ServiceAccounts; others are read on demand.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        settings: Settings,
        accounts: Caches[str],
        clock: Clock,
    ) -> None:
        self._source = source
        self._target = target
        self._settings = settings
        self._ca = digest_of(settings.ca_bundle) if settings.ca_bundle else None
        self._accounts = accounts
        self._clock = clock

    async def decide(self, seen: SeenSecret, known: Known) -> Decision:
        """Evaluate the rules for one Secret in their order.

        Raises:
            MistakesError: The Secret must be corrected first.
            ChangedError: It changed during the evaluation.
        """
        fixed_namespace = self._settings.fixed_namespace
        request = read_request(seen, fixed_namespace, has_ca=self._ca is not None)
        target: JsonObject | None = None
        holder: Holding | None = seen.holding
        if request.target is not None:
            target = await self._read_target(seen, request, request.target)
            holder = None if target is None else holding_of(target)
        token = holder.token if holder is not None else None
        now = self._clock.now()
        verdict = due_locally(seen, request, holder, self._ca, now)
        if verdict is None and token is not None:
            verdict = await self._due_by_server(seen, request, target, token, known)
        if verdict is None and renewal_time(seen) <= now:
            verdict = OVERDUE
        return Decision(seen, request, target, token, verdict)

    async def _read_target(self, seen: SeenSecret, request: Request, key: Key) -> JsonObject | None:
        try:
            live = await self._target.get(SECRET, key)
        except NotFound:
            return None
        except KubeError as error:
            raise ReconcileError(f"could not read target secret: {error}") from error
        if uid_of(live) == seen.uid:
            problem = "names this Secret itself; name another one, or remove the annotation"
            raise MistakesError(Mistake.of(names.TARGET_NAME, problem))
        if names.KEY_KUBECONFIG not in seen.holding.keys:
            where = f"target Secret {key} "
            if mistakes := kubeconfig_mistakes(holding_of(live), request, where):
                raise MistakesError(*mistakes)
        return live

    async def _due_by_server(
        self,
        seen: SeenSecret,
        request: Request,
        target: JsonObject | None,
        token: TokenFacts,
        known: Known,
    ) -> Due | None:
        """Evaluate the rules about a token that the API server may have ended."""
        uid = token.account_uid
        if uid and not await self._has_uid(request.account, uid):
            return OTHER_ACCOUNT
        if known.needs_review(token, monotonic()):
            # the process keeps no tokens
            secret = target or await self._source.find(SECRET, seen.key)
            raw = token_of(secret or {})
            if digest_of(raw) != token.digest:
                raise ChangedError
            if not await self._accepts(request.account, raw):
                return REJECTED
            known.accepted(token.digest, monotonic())
        return None

    async def _has_uid(self, account: Key, uid: str) -> bool:
        """Return whether the ServiceAccount exists with this uid.

        The watch may lag, so a read from the API server confirms a mismatch.
        """
        if self._accounts.get(account) == uid:
            return True
        live = await self._target.find(SERVICE_ACCOUNT, account, metadata_only=True)
        return live is not None and uid_of(live) == uid

    async def _accepts(self, account: Key, token: bytes) -> bool:
        """Return whether the API server accepts a token as one of the ServiceAccount's.

        An API server that does not serve the audiences itself would otherwise reject its own
        tokens, so the review names them.
        """
        spec: JsonObject = {"token": token.decode(errors="replace")}
        if self._settings.audiences:
            spec["audiences"] = list(self._settings.audiences)
        review: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": spec,
        }
        try:
            answer = await self._target.create(review)
        except KubeError as error:
            raise ReconcileError(f"token review failed: {error}") from error
        status = map_at(answer, "status")
        user = f"system:serviceaccount:{account.namespace}:{account.name}"
        return bool(status.get("authenticated")) and map_at(status, "user").get("username") == user


def due_locally(
    seen: SeenSecret, request: Request, holder: Holding | None, ca: bytes | None, now: datetime
) -> Due | None:
    """Evaluate the first rules, which need no API server; None if none applies.

    Args:
        holder: The credentials in the Secret that must contain the token; None if it does not
            exist.
        ca: Digest of the target cluster's CA, or None.
    """
    if not seen.annotations.get(names.RENEW):
        return REQUESTED
    if holder is None:
        return NO_TARGET
    if holder.token is None:
        return NO_TOKEN
    if request.target is not None and seen.holding.keys:
        return TO_MOVE
    if request.injects_ca and holder.ca != ca:
        return OTHER_CA
    return EXPIRED if holder.token.has_expired(now) else None


def renewal_time(seen: SeenSecret) -> datetime:
    """Return the time when the Secret is due for a new token.

    Raises:
        MistakesError: The annotation is not a time.
    """
    text = seen.annotations.get(names.RENEW, "")
    renewal = read_time(text)
    if renewal is None:
        problem = f"could not parse renew timestamp: {text!r} is not an RFC 3339 time; remove it"
        raise MistakesError(Mistake.of(names.RENEW, problem))
    return renewal


def renews_in(life: timedelta, random: float) -> float:
    """Return the seconds until the renewal of a token with the remaining lifetime `life`.

    That is 80 % of it, or of a day if it is longer, plus up to 5 %, so that tokens issued together
    are not renewed together.

    Args:
        random: A number from a uniform distribution between 0 and 1.
    """
    return (
        _RENEWAL_SHARE * min(life, _LONGEST_LIFE).total_seconds() * (1 + _RENEWAL_SPREAD * random)
    )
