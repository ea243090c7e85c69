"""Whether the API server still believes a token, asked only where nothing else can tell."""

from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.token_requestor.token import TokenFacts
from pergola.runtime.controlling.controller import ReconcileError

REVIEW_SECONDS: Final = 3600.0


class _Believed(NamedTuple):
    digest: bytes
    since: float


class Reviews:
    """Asks about tokens, and remembers those that were accepted or that we issued ourselves.

    Args:
        audiences: for whom tokens are. Without them, an API server that does not serve these
            audiences itself would reject each of its own tokens.
    """

    def __init__(self, client: Client, audiences: tuple[str, ...]) -> None:
        self._client = client
        self._audiences = list(audiences)
        self._believed: dict[Key, _Believed] = {}

    def is_due(self, key: Key, token: TokenFacts, now: float) -> bool:
        """Whether the API server has to be asked; `now` is on a clock that never goes back."""
        known = self._believed.get(key)
        if known is None or known.digest != token.digest or not token.account_uid:
            return True
        return now - known.since >= REVIEW_SECONDS

    async def accepts(self, account: Key, token: bytes) -> bool:
        """Whether the API server believes that this is a token of the ServiceAccount.

        Raises:
            ReconcileError: the API server could not be asked.
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

    def believe(self, key: Key, digest: bytes, now: float) -> None:
        """Notes that the token of a Secret is good."""
        self._believed[key] = _Believed(digest, now)

    def forget(self, key: Key) -> None:
        """The Secret is gone."""
        self._believed.pop(key, None)
