"""Properties that all components share, regardless of their objects (spec 20 §13)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Final

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, map_at
from pergola.bundle import references
from pergola.bundle.image_sources import ImageSource
from pergola.bundle.image_vector import ImageVector
from pergola.garden.components import task_names
from pergola.garden.components.authorities import authorities
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component, always, learn_nothing
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.kube.client import Client
from pergola.operator.reconcile import flows
from pergola.operator.reconcile.picture.steps import dry_run
from pergola.runtime.clock import SystemClock
from tests.support.garden import COMPLETE, HIGHLY_AVAILABLE, landscape

Path_ = tuple[str | int, ...]

each_component = pytest.mark.parametrize("component", CATALOG, ids=lambda each: each.name)


def objects_of(component: Component, *patches: JsonObject) -> list[JsonObject]:
    rendered = component.objects(landscape(COMPLETE, *patches))
    return [*rendered.direct, *(obj for each in rendered.managed for obj in each.objects)]


@each_component
def test_equal_landscapes_give_equal_objects(component: Component) -> None:
    assert component.objects(landscape(COMPLETE)) == component.objects(landscape(COMPLETE))


@each_component
@pytest.mark.parametrize("patches", [(), (HIGHLY_AVAILABLE,)], ids=["single", "highly available"])
def test_no_object_is_rendered_twice(component: Component, patches: tuple[JsonObject, ...]) -> None:
    found = Counter((obj["kind"], Key.of(obj)) for obj in objects_of(component, *patches))
    assert [identity for identity, count in found.items() if count > 1] == []


@each_component
def test_pods_get_tokens_only_on_request(component: Component) -> None:
    accounts = [obj for obj in objects_of(component) if obj["kind"] == "ServiceAccount"]
    assert all(account.get("automountServiceAccountToken") is False for account in accounts)


@each_component
def test_deployments_keep_two_revisions(component: Component) -> None:
    deployments = [obj for obj in objects_of(component) if obj["kind"] == "Deployment"]
    assert all(map_at(each, "spec")["revisionHistoryLimit"] == 2 for each in deployments)


@each_component
def test_objects_referenced_by_pods_are_safe_from_the_garbage_collector(
    component: Component,
) -> None:
    for obj in objects_of(component):
        if references(obj):
            annotations = map_at(obj, "metadata", "annotations")
            assert any(key.startswith("reference.resources.gardener.cloud/") for key in annotations)


DIGEST: Final = "ab" * 32


@each_component
@pytest.mark.parametrize("tag", ["", ":v1.2.3"])
def test_images_may_be_pinned_by_digest(component: Component, tag: str) -> None:
    original = landscape(COMPLETE)
    reference = f"registry.example.org:5000/team/image{tag}@sha256:{DIGEST}"
    sources = [
        ImageSource({"name": each.name, "ref": reference}, each.place)
        for each in original.images.sources
    ]
    pinned = replace(original, images=ImageVector(tuple(sources)))
    rendered = component.objects(pinned)
    objects = [*rendered.direct, *(obj for each in rendered.managed for obj in each.objects)]
    for path, text in texts(list(objects)):
        if DIGEST in text:
            # Its operator joins the two halves.
            halves = path[-2:] == ("image", "tag") and text == DIGEST
            assert halves or reference in text, path


def texts(value: object, path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    """Yield all texts in a value with their paths."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from texts(item, (*path, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from texts(item, (*path, index))


def test_components_and_their_tasks_have_unique_names() -> None:
    tasks = [name for each in CATALOG for name in (each.deploy, each.wait) if name]
    assert Counter(each.name for each in CATALOG).most_common(1)[0][1] == 1
    assert Counter(tasks).most_common(1)[0][1] == 1


@each_component
def test_an_optional_component_removes_all_its_objects(component: Component) -> None:
    if component.absent is always:
        return
    rendered = component.objects(landscape(COMPLETE))
    managed = {Key(each.namespace, each.name) for each in rendered.managed}
    direct = {Identity(GroupVersionKind.of(obj), Key.of(obj)) for obj in rendered.direct}
    direct = {each for each in direct if each.gvk != CRD}  # deletes the objects of all others too
    assert managed <= set(component.leftovers.managed)
    assert direct <= set(component.leftovers.direct)


LEARNT: Final = {
    "access_tokens",
    "backup_secret",
    "encryption_configuration",
    "gardener_api_server_address",
    "is_new_key_known",
    "own_seed_domain",
    "seed_domains",
    "seed_password",
    "terminal_seed",
}
"""What the components learn themselves."""


@each_component
def test_a_component_that_does_not_learn_uses_nothing_that_others_learn(
    component: Component,
) -> None:
    used: set[str] = set()

    class Observed(Landscape):
        def __getattribute__(self, name: str) -> object:
            used.add(name)
            return super().__getattribute__(name)

    known = landscape(COMPLETE)
    observed = Observed(**{field.name: getattr(known, field.name) for field in fields(known)})
    component.objects(observed)
    list(component.credentials(observed))

    assert not used & LEARNT or component.learn is not learn_nothing


@each_component
def test_a_component_uses_only_credentials_that_it_or_an_earlier_one_generates(
    component: Component,
) -> None:
    full = landscape(COMPLETE)
    if component.absent(full) is not None:
        return
    generated = {each.config.name for each in authorities()}
    for each in (*earlier(component), component):
        if each.absent(full) is None:
            generated |= {needed.config.name for needed in each.credentials(full)}
    known = {name: full.credentials.generated[name] for name in generated}
    component.objects(full.with_credentials(Credentials(known)))


def earlier(component: Component) -> set[Component]:
    """Return the components whose tasks must end before those of a component begin."""
    owners = {name: each for each in CATALOG for name in (each.deploy, each.wait)}
    found: set[Component] = set()
    left = [component]
    while left:
        before = {owners[name] for name in left.pop().after if name in owners}
        left += before - found
        found |= before
    return found


def test_every_task_that_a_component_comes_after_exists() -> None:
    run = dry_run(Client.__new__(Client), landscape(COMPLETE), SystemClock())
    tasks = {
        task.name
        for graph in (flows.setup(run), flows.reconciliation(run, Key("", "garden")))
        for task in graph.order()
    }
    names = {name for name, text in vars(task_names).items() if isinstance(text, str)}
    named = {getattr(task_names, name) for name in names if name.isupper()}
    assert named <= tasks


@each_component
def test_registrations_are_removed_before_what_they_name(component: Component) -> None:
    names = [key.name for key in component.leftovers.managed]
    for number, name in enumerate(names):
        assert name.removesuffix("-runtime") + "-virtual" not in names[number + 1 :]
