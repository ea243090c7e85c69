"""Reviews of tokens by the API server, for cases that cannot be decided locally."""

from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.token_requestor.token import TokenFacts
from pergola.runtime.controlling.controller import ReconcileError

REVIEW_SECONDS: Final = 3600.0


class _Accepted(NamedTuple):
    digest: bytes
    since: float


class Reviews:
    """Reviews tokens, and remembers those that were accepted or issued by this process.

    Args:
        audiences: The audiences of the tokens. An API server that does not serve them itself would
            otherwise reject its own tokens.
    """

    def __init__(self, client: Client, audiences: tuple[str, ...]) -> None:
        self._client = client
        self._audiences = list(audiences)
        self._known: dict[Key, _Accepted] = {}

    def is_due(self, key: Key, token: TokenFacts, now: float) -> bool:
        """Return whether a token needs a review.

        Args:
            now: The time on a monotonic clock, in seconds.
        """
        known = self._known.get(key)
        if known is None or known.digest != token.digest or not token.account_uid:
            return True
        return now - known.since >= REVIEW_SECONDS

    async def accepts(self, account: Key, token: bytes) -> bool:
        """Return whether the API server accepts a token as one of the ServiceAccount's.

        Raises:
            ReconcileError: The review failed.
        """
        spec: JsonObject = {"token": token.decode(errors="replace")}
        if self._audiences:
            spec["audiences"] = self._audiences
        review: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": spec,
        }
        try:
            answer = await self._client.create(review)
        except KubeError as error:
            raise ReconcileError(f"token review failed: {error}") from error
        status = map_at(answer, "status")
        user = f"system:serviceaccount:{account.namespace}:{account.name}"
        return bool(status.get("authenticated")) and map_at(status, "user").get("username") == user

    def accepted(self, key: Key, digest: bytes, now: float) -> None:
        """Record that the token of a Secret is good."""
        self._known[key] = _Accepted(digest, now)

    def forget(self, key: Key) -> None:
        """Forget a deleted Secret."""
        self._known.pop(key, None)
