"""Why a NetworkPolicy exists: the Service that it belongs to, and the traffic it allows."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import NAMESPACE, NETWORK_POLICY, POD, SERVICE
from pergola.api.objects import Key
from pergola.controllers.network_policy import Settings
from pergola.controllers.network_policy.explanation import (
    Explanation,
    ExplanationError,
    State,
)
from pergola.controllers.network_policy.explanation import explain as of_service
from pergola.controllers.network_policy.seen import owner_of
from pergola.resource_manager.network_policies import network_policy_settings
from pergola.why.answer import Asked, Evidence, Kind, Part, Statement, Topic
from pergola.why.reading import Reader
from pergola.why.running_manager import network_policy_configuration

_NEEDED: Final = (NAMESPACE, SERVICE, NETWORK_POLICY, POD)
_STATES: Final[dict[State, str]] = {
    "present": "it is as the network policy controller renders it",
    "differs": "it differs from the network policy controller's rendering, which will overwrite it",
    "kept": "it stays, because an annotation of the Service is malformed",
    "superfluous": "it will be deleted: no annotation, or no pod, needs it any more",
}


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the Service of a policy, its callers, and the controller's plans for it."""
    service = owner_of(asked.obj)
    if service is None:
        return Part()
    if await reader.is_missing(SERVICE, service):
        text = "which no longer exists: the network policy controller deletes the policy"
        service_statement = Statement(topic=Topic.WANTED, subject=f"Service {service}", text=text)
        return Part(statements=(service_statement,))
    found = await _explanation(service, reader)
    if found is None:
        return Part(statements=(Statement(topic=Topic.WANTED, subject=f"Service {service}"),))
    return Part(
        sentence="is needed by its Service" if _is_needed(asked, found) else "",
        statements=(*_desired(asked, found), *_decided(asked, found)),
    )


async def _explanation(service: Key, reader: Reader) -> Explanation | None:
    """Return the explanation of a Service; None if the caller lacks a permission for it."""
    if not all([await reader.may_list(gvk) for gvk in _NEEDED]):
        return None
    config = await network_policy_configuration(reader)
    settings = network_policy_settings(config) if config else Settings()
    try:
        return await of_service(reader.client, service, settings)
    except ExplanationError as error:
        reader.note(str(error))
        return None


def _is_needed(asked: Asked, found: Explanation) -> bool:
    return any(p.key == asked.key and p.state in ("present", "differs") for p in found.policies)


def _desired(asked: Asked, found: Explanation) -> Iterator[Statement]:
    callers = [
        caller
        for caller in found.callers
        if any(policy.key == asked.key for policy in caller.policies)
    ]
    yield Statement(
        topic=Topic.WANTED,
        subject=f"Service {found.service}",
        evidence=tuple(Evidence(Kind.SOURCE, caller.because) for caller in callers),
        below=tuple(
            Statement(
                topic=Topic.DECIDED,
                text=_caller(caller.selector, caller.namespace, caller.ports),
            )
            for caller in callers
        ),
    )


def _caller(selector: str, namespace: str, ports: tuple[str, ...]) -> str:
    who = f"pods {selector} in namespace {namespace}" if namespace else "everyone"
    return f"lets {who} connect to {', '.join(ports) or 'all ports'}"


def _decided(asked: Asked, found: Explanation) -> Iterator[Statement]:
    for policy in found.policies:
        if policy.key == asked.key and policy.state in _STATES:
            topic = Topic.WAITS if policy.state == "superfluous" else Topic.DECIDED
            yield Statement(topic=topic, text=_STATES[policy.state], because=found.refusal)
    for problem in found.problems:
        yield Statement(
            topic=Topic.PROBLEM,
            subject=f"Service {found.service}",
            text=problem,
            advice="correct the annotation of the Service",
        )
