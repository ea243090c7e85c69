"""Hints that offer endpoints to clients in their own zone (spec 12 §8)."""

from typing import Final

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict
from pergola.admission.webhook import Webhook, sharing
from pergola.api.objects import GroupKind, JsonObject
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks.decoding import maps_in, text_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import Installation, selector
from pergola.resource_manager.webhooks.subjects import Subject

NAME: Final = "endpoint-slice-hints.resources.gardener.cloud"
PATH: Final = "/webhooks/endpoint-slice-hints"
CONSIDER: Final = "endpoint-slice-hints.resources.gardener.cloud/consider"

ENDPOINT_SLICES: Final = Subject(GroupKind("discovery.k8s.io", "EndpointSlice"), "endpointslices")


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: changes of EndpointSlices with the label."""
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=(ENDPOINT_SLICES.rule,),
            namespace_selector=installation.namespaces(),
            object_selector=selector(labels={CONSIDER: "true"}),
            match_policy="Equivalent",
        )
    ]


def webhooks(_: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    return sharing(review, registrations(dependencies.installation))


def review(request: Request) -> Verdict:
    """Set the hint of each endpoint with a zone to that zone."""
    return ENDPOINT_SLICES.answer(request, _decide)


def _decide(endpoints: JsonObject) -> Verdict:
    draft = Draft(endpoints)
    for index in range(len(maps_in(endpoints, "endpoints"))):
        zone = text_in(endpoints, "endpoints", index, "zone")
        if zone:
            hints: JsonObject = {"forZones": [{"name": zone}]}
            draft.set(("endpoints", index, "hints"), hints, f"the endpoint is in zone {zone}")
    return draft.verdict("every endpoint with a zone has a hint for it")
