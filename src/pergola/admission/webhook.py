"""One webhook: its registration and its handler, declared together.

The server and the webhook configurations are built from the same declarations, so that nothing is
registered without being served.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pergola.admission.http import Endpoint
from pergola.admission.protocol import Reviewer
from pergola.admission.registration import Registration
from pergola.admission.review import Handler
from pergola.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A handler, and the requests that an API server sends to it.

    Attributes:
        handler: webhooks with the same path share one.
        of_shoots: registered in the clusters of Shoots, not in the cluster that the process works
            on.
        is_registered: whether this installation registers it; it is served either way.
    """

    registration: Registration
    handler: Handler
    of_shoots: bool = False
    is_registered: bool = True

    @property
    def short_name(self) -> str:
        """The first part of its name, such as `seccomp-profile`."""
        return self.registration.name.partition(".")[0]


def sharing(
    handler: Handler, registrations: Iterable[Registration], *, is_registered: bool = True
) -> list[Webhook]:
    """Return one webhook for each registration, all with the same handler."""
    return [
        Webhook(registration=registration, handler=handler, is_registered=is_registered)
        for registration in registrations
    ]


def registrations(webhooks: Iterable[Webhook]) -> list[Registration]:
    """Return the entries for the cluster that the process works on, in order."""
    return [w.registration for w in webhooks if w.is_registered and not w.of_shoots]


def handlers(webhooks: Iterable[Webhook]) -> dict[str, Handler]:
    """Return the handlers by path.

    Raises:
        ValueError: Two handlers share a path.
    """
    served: dict[str, Handler] = {}
    for webhook in webhooks:
        path = webhook.registration.path
        if served.setdefault(path, webhook.handler) is not webhook.handler:
            raise ValueError(f"two webhooks answer at {path}")
    return served


def endpoints(webhooks: Iterable[Webhook], metrics: Metrics) -> Mapping[str, Endpoint]:
    """Return the served endpoints by path.

    Raises:
        ValueError: Two handlers share a path.
    """
    return {
        path: Reviewer(path, handler, metrics.webhook(path))
        for path, handler in handlers(webhooks).items()
    }
