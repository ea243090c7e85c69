"""The decision whether a Secret needs a new token (spec 11 §1.4 step 2).

The rules are in `due`; this module evaluates them in order and reads their inputs.
"""

from dataclasses import dataclass

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.accounts import Accounts
from pergola.resource_manager.controllers.token_requestor.due import (
    EXPIRED,
    OTHER_ACCOUNT,
    OVERDUE,
    REJECTED,
    Due,
    due_by_content,
    renewal_time,
)
from pergola.resource_manager.controllers.token_requestor.inputs import (
    Mistake,
    MistakesError,
    Request,
    annotation,
    kubeconfig_mistakes,
    read_request,
)
from pergola.resource_manager.controllers.token_requestor.observe import (
    Holding,
    SeenSecret,
    holding_of,
    token_of,
)
from pergola.resource_manager.controllers.token_requestor.review import Reviews
from pergola.resource_manager.controllers.token_requestor.token import TokenFacts, digest_of
from pergola.runtime.clock import Clock, monotonic
from pergola.runtime.controlling.controller import ReconcileError


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
    """Decides for the Secrets of one instance.

    Args:
        fixed_namespace: The namespace of all ServiceAccounts; empty if each Secret names its own.
        ca: The CA of the target cluster; None if unknown.
    """

    def __init__(
        self,
        source: Client,
        target: Client,
        accounts: Accounts,
        reviews: Reviews,
        clock: Clock,
        *,
        fixed_namespace: str,
        ca: bytes | None,
    ) -> None:
        self._source = source
        self._target = target
        self._accounts = accounts
        self._reviews = reviews
        self._clock = clock
        self._fixed_namespace = fixed_namespace
        self._ca = digest_of(ca) if ca else None

    async def decide(self, seen: SeenSecret) -> Decision:
        """Evaluate one Secret without writing anything.

        Raises:
            MistakesError: The Secret must be corrected first.
            ChangedError: It changed during the evaluation.
        """
        request = read_request(seen, self._fixed_namespace, has_ca=self._ca is not None)
        target: JsonObject | None = None
        holder: Holding | None = seen.holding
        if request.target is not None:
            target = await self._read_target(seen, request, request.target)
            holder = None if target is None else holding_of(target)
        verdict = due_by_content(seen, request, holder, self._ca)
        token = holder.token if holder is not None else None
        if verdict is None and token is not None:
            verdict = await self._of_token(seen, request, target, token)
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
            raise MistakesError([Mistake(annotation(names.TARGET_NAME), problem)])
        if names.KEY_KUBECONFIG not in seen.holding.keys:
            where = f"target Secret {key} "
            if mistakes := kubeconfig_mistakes(holding_of(live), request, where):
                raise MistakesError(mistakes)
        return live

    async def _of_token(
        self, seen: SeenSecret, request: Request, target: JsonObject | None, token: TokenFacts
    ) -> Due | None:
        """Evaluate the rules for a token that exists and is where it belongs."""
        now = self._clock.now()
        if token.has_expired(now):
            return EXPIRED
        uid = token.account_uid
        if uid and not await self._accounts.has_uid(request.account, uid):
            return OTHER_ACCOUNT
        if self._reviews.is_due(seen.key, token, monotonic()):
            raw = await self._read_token(seen.key, target)
            if digest_of(raw) != token.digest:
                raise ChangedError
            if not await self._reviews.accepts(request.account, raw):
                return REJECTED
            self._reviews.accepted(seen.key, token.digest, monotonic())
        return OVERDUE if renewal_time(seen) <= now else None

    async def _read_token(self, key: Key, target: JsonObject | None) -> bytes:
        """Read the token again; the process keeps no tokens."""
        try:
            secret = target or await self._source.get(SECRET, key)
        except NotFound:
            raise ChangedError from None
        return token_of(secret)
