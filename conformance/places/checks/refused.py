"""Checks of what is refused."""

from collections.abc import Awaitable
from typing import Final

from conformance.places.checks.certificates import (
    KUBELET_SERVING,
    add_node,
    agent,
    kubelet,
    request,
)
from conformance.places.checks.managed import (
    MANAGED_RESOURCE,
    conditions,
    create,
    served_class,
)
from conformance.places.checks.setting import eventually
from conformance.places.place import PATIENCE, Check, Site
from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.errors import ApiError
from pergola.manifests import manifest
from pergola.testing.waiting import until

_DNS_RECORDS: Final = "dnsrecords.extensions.gardener.cloud"
_NOT_ALLOWED: Final = "places-elsewhere"


async def _definition(site: Site) -> None:
    async def probe() -> bool:
        return "annotation" in await _refusal(site.target.client.delete(CRD, Key("", _DNS_RECORDS)))

    await eventually("the deletion of a CustomResourceDefinition to be refused", probe)


async def _extension(site: Site) -> None:
    record = manifest(
        "extensions.gardener.cloud/v1alpha1",
        "DNSRecord",
        "refused",
        namespace=site.namespace,
        spec={
            "type": "local",
            "secretRef": {"name": "a", "namespace": site.namespace},
            "name": "a.example.org",
            "recordType": "A",
            "values": ["no address"],
        },
    )

    async def probe() -> bool:
        said = await _refusal(site.target.client.create(record, dry_run=True))
        return "spec.values[0]" in said

    await eventually("a DNSRecord with a wrong address to be refused", probe)


async def _reported(site: Site) -> None:
    wrong = manifest("v1", "ConfigMap", "Not_A_Name", namespace=site.namespace)
    key = await create(site, "wrong", served_class(site), wrong)

    def is_reported(resource: JsonObject) -> bool:
        return conditions(resource).get("ResourcesApplied") == "False"

    await until(site.source.client, MANAGED_RESOURCE, key, is_reported, patience=PATIENCE)


async def _elsewhere(site: Site) -> None:
    namespace = manifest("v1", "Namespace", _NOT_ALLOWED)
    await site.source.client.create(namespace)
    user = site.place.users[0]
    attributes = {"verb": "get", "resource": "secrets", "namespace": _NOT_ALLOWED}
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    answer = await site.source.client.create(review)
    assert not map_at(answer, "status")["allowed"], f"{user} may read Secrets of other namespaces"


async def _kubelet(site: Site) -> None:
    name = "of-other-kubelet"
    await add_node(site, name)
    decision = await request(site, "nameless", KUBELET_SERVING, kubelet(name))
    assert decision == "Denied", f"the certificate of a kubelet without names is {decision}"


async def _agent(site: Site) -> None:
    name = "of-other-agent"
    await add_node(site, name)
    own, nodes = agent(name), "/api/v1/nodes"
    await own.send(site, "GET", f"{nodes}/{name}")
    said = await _refusal(own.send(site, "GET", f"{nodes}/node-a"))
    assert "is not this agent's node" in said, f"another Node: {said or 'was read'}"
    said = await _refusal(own.send(site, "GET", "/api/v1/namespaces/kube-system/secrets"))
    assert "node agents may only read secrets by name" in said, (
        f"all Secrets: {said or 'were read'}"
    )


async def _refusal(request: Awaitable[object]) -> str:
    """Return the text of a refusal; empty if the request succeeds."""
    try:
        await request
    except ApiError as error:
        return str(error)
    return ""


DEFINITIONS: Final = Check("refused", "the deletion of a protected definition", _definition)
EXTENSIONS: Final = Check("refused", "a DNSRecord with a wrong address", _extension)
REPORTED: Final = Check("refused", "a wrong object is reported", _reported)
ELSEWHERE: Final = Check("refused", "Secrets of other namespaces", _elsewhere)
KUBELETS: Final = Check("refused", "the certificate of a kubelet without names", _kubelet)
AGENTS: Final = Check("refused", "what belongs to another node's agent", _agent)
