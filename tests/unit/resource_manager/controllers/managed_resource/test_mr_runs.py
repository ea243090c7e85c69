"""Runs of ManagedResources over time: what is settled, shared, scaled and repaired."""

from dataclasses import fields
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, PVC
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.controllers.managed_resource.merge import MergeOptions
from pergola.resource_manager.controllers.managed_resource.reconcile import Settings
from pergola.resource_manager.target.autoscalers import HPA
from tests.support.managed_site import NAMESPACE, ManagedSite

WIDGET = GroupVersionKind("example.org", "v1", "Widget")


def obj(gvk: GroupVersionKind, name: str, **content: object) -> JsonObject:
    """Return an object."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **content}


def config_map(name: str = "x", text: str = "a") -> JsonObject:
    """Return a ConfigMap."""
    return obj(CONFIG_MAP, name, data={"text": text})


def claim() -> JsonObject:
    """Return a claim, whose deletion would lose data."""
    return obj(PVC, "data", spec={"resources": {"requests": {"storage": "1Gi"}}})


def web(replicas: int, image: str = "web:1") -> JsonObject:
    """Return a Deployment."""
    labels = {"matchLabels": {"app": "web"}}
    containers = [{"name": "web", "image": image}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    spec = {"replicas": replicas, "selector": labels, "template": template}
    return obj(DEPLOYMENT, "web", spec=spec)


def autoscaler() -> JsonObject:
    """Return an autoscaler of the Deployment."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return obj(HPA, "web", spec={"maxReplicas": 9, "scaleTargetRef": target})


async def origin(site: ManagedSite, gvk: GroupVersionKind, name: str) -> str:
    """Return the name of the ManagedResource in the origin of an object; empty without object."""
    live = await site.live(gvk, name)
    return annotations_of(live)[marks.ORIGIN].removeprefix(f"{NAMESPACE}/") if live else ""


# Objects that two ManagedResources describe alike


async def test_an_equal_object_belongs_to_the_managed_resource_that_took_it_last() -> None:
    site = ManagedSite()
    await site.describe("old", claim())
    await site.run("old")
    await site.describe("new", claim())
    await site.run("new")
    assert await origin(site, PVC, "data") == "new"


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("last", ["old", "new"])
async def test_an_object_is_not_deleted_while_another_describes_it(
    last: str, restarts: bool
) -> None:
    site = ManagedSite()
    for name in ("old", "new") if last == "new" else ("new", "old"):
        await site.describe(name, claim())
        await site.run(name)
    before = await site.live(PVC, "data")
    await site.describe("old")
    if restarts:
        site.restart()
    await site.run("old")
    await site.run("new")
    live = await site.live(PVC, "data")
    assert live is not None
    assert before is not None
    assert live["metadata"]["uid"] == before["metadata"]["uid"]
    assert await origin(site, PVC, "data") == "new"


@pytest.mark.parametrize("first", ["old", "new"])
async def test_an_object_that_both_drop_at_once_is_deleted(first: str) -> None:
    site = ManagedSite()
    second = {"old": "new", "new": "old"}[first]
    for name in ("old", "new"):
        await site.describe(name, config_map())
        await site.run(name)
    for name in ("old", "new"):
        await site.describe(name)
    await site.run(first, times=1)
    assert await site.live(CONFIG_MAP, "x") is not None
    await site.run(second)
    assert await site.live(CONFIG_MAP, "x") is None


async def test_a_kept_object_is_deleted_with_the_managed_resource_that_adopts_it() -> None:
    site = ManagedSite()
    await site.describe("old", config_map(), keepObjects=True)
    await site.run("old")
    await site.delete("old")
    assert await site.live(CONFIG_MAP, "x") is not None
    await site.describe("new", config_map())
    await site.run("new")
    assert await origin(site, CONFIG_MAP, "x") == "new"
    await site.delete("new")
    assert await site.live(CONFIG_MAP, "x") is None


async def test_the_origin_of_a_managed_resource_that_is_gone_spares_nothing() -> None:
    site = ManagedSite()
    await site.describe("new", config_map())
    await site.run("new")
    gone = {"metadata": {"annotations": {marks.ORIGIN: f"{NAMESPACE}/gone"}}}
    await site.edit(CONFIG_MAP, "x", gone)
    await site.describe("new")
    await site.run("new")
    assert await site.live(CONFIG_MAP, "x") is None


async def test_two_with_an_equal_object_write_nothing_at_rest() -> None:
    site = ManagedSite()
    for name in ("one", "two"):
        await site.describe(name, config_map())
        await site.run(name)
    site.away.writes.clear()
    for _ in range(5):
        await site.run("one")
        await site.run("two")
    assert site.away.writes == []
    await site.edit(CONFIG_MAP, "x", {"data": {"text": "edited"}})
    for name in ("one", "two", "one", "two"):
        await site.run(name)
    assert site.away.writes == ["x"]  # one repair, and no other writer takes it back


async def test_the_other_takes_the_object_when_one_leaves() -> None:
    site = ManagedSite()
    for name in ("one", "two"):
        await site.describe(name, config_map(), keepObjects=True)
        await site.run(name)
    await site.delete("two")
    await site.run("one")
    assert await origin(site, CONFIG_MAP, "x") == "one"


async def test_nothing_is_remembered_about_managed_resources_that_are_gone() -> None:
    site = ManagedSite()
    for number in range(3):
        await site.describe(f"mr-{number}", config_map(f"x-{number}"), keepObjects=True)
        await site.run(f"mr-{number}")
        await site.delete(f"mr-{number}")
    remembered = vars(site.applier.settled)["_matches"]
    assert remembered == vars(site.target.describers)["_objects"] == {}


# Every input of a merge


async def _with_autoscaler(site: ManagedSite) -> None:
    await site.away.create(autoscaler())


async def _as_another(site: ManagedSite) -> None:
    await site.describe("other", web(2))
    await site.run("other")


async def _relabelled(site: ManagedSite) -> None:
    await site.describe("mr", web(2), injectLabels={"a": "b"})


async def _forcing_labels(site: ManagedSite) -> None:
    await site.describe("mr", web(2), forceOverwriteLabels=True)


async def _forcing_annotations(site: ManagedSite) -> None:
    await site.describe("mr", web(2), forceOverwriteAnnotations=True)


INPUTS = {
    "origin": _as_another,
    "labels": _relabelled,
    "force_labels": _forcing_labels,
    "force_annotations": _forcing_annotations,
    "scaled": _with_autoscaler,
}


def test_every_input_of_a_merge_has_a_case() -> None:
    assert {field.name for field in fields(MergeOptions)} == set(INPUTS)


@pytest.mark.parametrize("name", INPUTS)
async def test_an_object_is_merged_again_if_an_input_changes(name: str) -> None:
    site = ManagedSite()
    await site.describe("mr", web(2))
    await site.run("mr")
    known = dict(vars(site.applier.settled)["_matches"])
    await site.run("mr")
    assert vars(site.applier.settled)["_matches"] == known
    await INPUTS[name](site)
    await site.run("mr")
    assert vars(site.applier.settled)["_matches"] != known


# Replicas


async def test_replicas_follow_the_manifest_when_the_autoscaler_leaves() -> None:
    site = ManagedSite()
    await site.describe("mr", web(2), autoscaler())
    await site.run("mr")
    await site.edit(DEPLOYMENT, "web", {"spec": {"replicas": 7}})
    await site.run("mr")
    live = await site.live(DEPLOYMENT, "web")
    assert live is not None
    assert live["spec"]["replicas"] == 7
    await site.describe("mr", web(2))
    await site.run("mr", times=1)
    live = await site.live(DEPLOYMENT, "web")
    assert live is not None
    assert live["spec"]["replicas"] == 2


async def test_an_autoscaler_that_the_same_run_deletes_scales_nothing() -> None:
    site = ManagedSite()
    await site.describe("mr", web(2), autoscaler())
    await site.run("mr")
    await site.edit(DEPLOYMENT, "web", {"spec": {"replicas": 7}})
    site.target.stale = [autoscaler()]  # the watch is late
    await site.describe("mr", web(3, "web:2"))
    await site.run("mr", times=1)
    live = await site.live(DEPLOYMENT, "web")
    assert live is not None
    assert live["spec"]["replicas"] == 3
    assert live["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"


# Repairs


async def test_updates_that_change_nothing_are_no_repairs() -> None:
    site = ManagedSite(Settings(always_update=True, sync_period=3600.0), refused=["bad"])
    await site.away.create(config_map("bad", "before"))
    await site.describe("mr", config_map("good"), config_map("bad"))
    for _ in range(9):  # the backoff of a run that fails
        assert isinstance(await site.run("mr", times=1), Exception)
    await site.describe("mr", config_map("good"))
    await site.run("mr")
    await site.edit(CONFIG_MAP, "good", {"data": {"text": "edited"}})
    await site.run("mr", times=1)
    live = await site.live(CONFIG_MAP, "good")
    assert live is not None
    assert live["data"] == {"text": "a"}
    assert await site.message("mr") == "All resources are applied."


async def test_a_defaulted_object_without_watch_is_sent_once_and_is_no_fight() -> None:
    site = ManagedSite()
    site.target.uncovered = (NAMESPACE,)
    await site.describe("mr", obj(WIDGET, "w", spec={"size": 1}))
    for _ in range(9):
        await site.run("mr")
    assert site.away.writes == ["w"]
    await site.edit(WIDGET, "w", {"spec": {"size": 2}})
    await site.run("mr")
    live = await site.live(WIDGET, "w")
    assert live is not None
    assert live["spec"] == {"size": 1, "mode": "Auto"}
    assert await site.message("mr") == "All resources are applied."


async def test_a_real_fight_is_still_limited() -> None:
    site = ManagedSite()
    await site.describe("mr", config_map())
    await site.run("mr")
    site.away.writes.clear()
    for number in range(9):
        await site.edit(CONFIG_MAP, "x", {"data": {"text": f"edit {number}"}})
        await site.run("mr", times=1)
    assert site.away.writes == ["x"] * 5
    assert "repeatedly" in await site.message("mr")


# Any number of changes

RESOURCES = ("one", "two", "three")
OBJECTS = ("x", "y")

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(RESOURCES), st.frozensets(st.sampled_from(OBJECTS)) | st.none()),
        st.sampled_from([("run", each) for each in RESOURCES]),
        st.just(("restart", "")),
    ),
    max_size=14,
)


class Landscape:
    """ManagedResources with the same objects, and what must hold after each step.

    Attributes:
        described: the objects in the manifests of each.
        applied: those at its last run.
    """

    def __init__(self) -> None:
        self.site = ManagedSite()
        self.described: dict[str, frozenset[str]] = {}
        self.applied: dict[str, frozenset[str]] = {}

    async def change(self, name: str, objects: frozenset[str] | None) -> None:
        """Change or delete a ManagedResource, without a run."""
        if objects is None:
            if self.described.pop(name, None) is not None:
                await self.site.home.delete(MANAGED_RESOURCE, Key(NAMESPACE, name))
            return
        present = await self.site.home.find(MANAGED_RESOURCE, Key(NAMESPACE, name))
        if present is not None and name not in self.described:
            return  # it is being deleted
        self.described[name] = objects
        await self.site.describe(name, *map(config_map, sorted(objects)))

    async def run(self, name: str) -> None:
        """Run the controller; it deletes nothing that another one has applied."""
        before = await self._uids()
        await self.site.run(name, times=1)
        after = await self._uids()
        gone = {each for each in before if before[each] != after.get(each)}
        others = [each for each in self.applied if each != name and each in self.described]
        for other in others:
            assert not gone & self.applied[other] & self.described[other]
        self.applied[name] = self.described.get(name, frozenset())

    async def _uids(self) -> dict[str, str]:
        found = {name: await self.site.live(CONFIG_MAP, name) for name in OBJECTS}
        return {name: uid_of(live) for name, live in found.items() if live is not None}

    async def settle(self) -> None:
        """Run everything until nothing is left to do."""
        for _ in range(3):
            for name in RESOURCES:
                await self.run(name)


@given(changes=CHANGES)
async def test_an_object_exists_exactly_while_a_managed_resource_describes_it(
    changes: list[tuple[str, object]],
) -> None:
    landscape = Landscape()
    for what, how in changes:
        if what == "restart":
            landscape.site.restart()
        elif what == "run":
            await landscape.run(str(how))
        else:
            await landscape.change(what, cast("frozenset[str] | None", how))
    await landscape.settle()
    for name in OBJECTS:
        describing = {each for each, objects in landscape.described.items() if name in objects}
        owner = await origin(landscape.site, CONFIG_MAP, name)
        assert (owner in describing) if describing else owner == ""
    landscape.site.away.writes.clear()
    await landscape.settle()
    assert landscape.site.away.writes == []
