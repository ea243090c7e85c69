"""One review of an extension object: which checks apply, and the effect of their findings.

An update that does not change the content is never refused because of that content: newer rules
must not prevent an old object from being finalized (spec 12, Beyond 17). Such findings become
warnings.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import Request, Verdict, allowed, errored, invalid
from pergola.admission.webhook import Webhook
from pergola.api import field_errors
from pergola.api.field_errors import IMMUTABLE, Cause, forbidden
from pergola.api.objects import JsonObject, deletion_timestamp_of, name_of
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.extension_validation.findings import (
    differences,
    same_meaning,
)
from pergola.resource_manager.webhooks.extension_validation.kinds import DRUID, KINDS
from pergola.resource_manager.webhooks.extension_validation.metadata import (
    check_metadata,
    check_metadata_update,
)
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import Kind, Profile
from pergola.resource_manager.webhooks.installation import Installation

_STATUS_IS_CHECKED: Final = "OperatingSystemConfig"


def registrations(_: Installation) -> list[Registration]:
    """Return one entry for each kind: creations and updates."""
    return [
        Registration(
            name=f"validation.extensions.{kind.plural}.resources.gardener.cloud",
            path=path_of(kind),
            kind="validating",
            rules=(Rule(("CREATE", "UPDATE"), (kind.group,), ("v1alpha1",), (kind.plural,)),),
        )
        for kind in KINDS
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return a webhook for each kind; only runtime instances register them."""
    profile = config.extension_validation.profile
    is_registered = dependencies.installation.kind == "runtime"
    return [
        Webhook(
            registration=registration,
            handler=ExtensionValidation(kind, profile),
            is_registered=is_registered,
        )
        for kind, registration in zip(KINDS, registrations(dependencies.installation), strict=True)
    ]


def path_of(kind: Kind) -> str:
    """Return the path for reviews of a kind."""
    group = "druid" if kind.group == DRUID else "extensions"
    return f"/validate-{group}-gardener-cloud-v1alpha1-{kind.kind.lower()}"


class ExtensionValidation:
    """The handler for one kind."""

    def __init__(self, kind: Kind, profile: Profile) -> None:
        self._kind = kind
        self._profile = profile

    def __call__(self, request: Request) -> Verdict:
        """Decide on one request, with all findings at once."""
        if request.operation not in ("CREATE", "UPDATE"):
            return allowed(because=f"{request.operation} is not validated")
        new, old = request.object, request.old_object
        if new is None or not isinstance(new.get("spec", {}), dict | None):
            return errored(HTTPStatus.BAD_REQUEST, f"no {self._kind.kind} in the request")
        if request.operation == "CREATE" or old is None:
            return self._judged(new, [*self._created(new)])
        found = [*check_metadata_update(new, old), *self._spec_changed(new, old)]
        content = list(self._created(new))
        if self._says_the_same(new, old):
            return self._judged(new, found, _sentences(content))
        return self._judged(new, [*found, *content])

    def _created(self, obj: JsonObject) -> Iterator[Cause]:
        yield from check_metadata(obj, namespaced=self._kind.namespaced)
        yield from self._kind.check(obj, self._profile)

    def _spec_changed(self, new: JsonObject, old: JsonObject) -> Iterator[Cause]:
        mine, theirs = new.get("spec"), old.get("spec")
        if deletion_timestamp_of(new) is not None:
            if not same_meaning(mine, theirs):
                yield self._frozen(mine, theirs)
            return
        yield from self._kind.check_update(new, old, self._profile)

    def _frozen(self, new: JsonObject | None, old: JsonObject | None) -> Cause:
        if self._kind.group == DRUID:
            return field_errors.invalid("spec", new, IMMUTABLE)
        requested = ", ".join(differences(new or {}, old or {}))
        if self._profile == "strict":
            return forbidden("spec", requested)
        return forbidden(
            "spec",
            f"cannot update {self._kind.word} spec if deletion timestamp is set. "
            f"Requested changes: {requested}",
        )

    def _says_the_same(self, new: JsonObject, old: JsonObject) -> bool:
        parts = ["spec", "status"] if self._kind.kind == _STATUS_IS_CHECKED else ["spec"]
        return all(same_meaning(new.get(part), old.get(part)) for part in parts)

    def _judged(
        self, obj: JsonObject, causes: list[Cause], warnings: tuple[str, ...] = ()
    ) -> Verdict:
        if causes:
            return invalid(f"{self._kind.kind}.{self._kind.group}", name_of(obj), tuple(causes))
        return allowed(because="it follows all rules of its kind", warnings=warnings)


def _sentences(causes: list[Cause]) -> tuple[str, ...]:
    return tuple(map(str, causes))
