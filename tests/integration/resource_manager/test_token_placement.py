"""Placement of tokens by the TokenRequestor, on two real API servers: spec 11 §1.8, 6 to 8."""

import base64

import pytest

from pergola.api.objects import (
    annotations_of,
    labels_of,
    map_at,
)
from pergola.kube.errors import NotFound
from pergola.kube.yaml import parse
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.observe import (
    _claims,
    data_of,
    token_of,
)
from tests.support.token_clusters import (
    Clusters,
    encoded,
    kubeconfig_in,
    kubeconfig_with,
    renewal,
)

# 6


async def test_only_the_token_of_the_current_user_in_a_kubeconfig_changes(
    clusters: Clusters,
) -> None:
    await clusters.put(data={"kubeconfig": kubeconfig_with("old"), "other": b"stays"})
    async with clusters.start():
        secret = await clusters.issued(other_than=b"old")
    found, expected = kubeconfig_in(secret), parse(kubeconfig_with("old"))
    assert isinstance(expected, dict)
    robot = found["users"][1]["user"]
    assert _claims(robot.pop("token").encode())["aud"] == ["gardener"]
    assert robot == {"future": 1}
    found["users"][1]["user"] = {"token": "old", "future": 1}
    assert found == expected
    assert set(map_at(secret, "data")) == {"kubeconfig", "other"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", "is neither YAML nor JSON"),
        (b"[]", "it must be a map"),
        (
            kubeconfig_with().replace(b"current-context: main", b"current-context: no"),
            "did not find context defined",
        ),
        (kubeconfig_with(users=[]), 'did not find authInfo of current context named "robot"'),
    ],
)
async def test_an_unusable_kubeconfig_is_reported_and_left_alone(
    clusters: Clusters, content: bytes, problem: str
) -> None:
    before = await clusters.put(data={"kubeconfig": content})
    async with clusters.start():
        note = await clusters.warning("InvalidTokenRequest")
        await clusters.settle()
        assert note.startswith("data[kubeconfig]: ")
        assert problem in note
        assert clusters.taken() == []
        assert await clusters.secret() == before


# 7


async def test_with_both_annotations_the_token_is_written_to_the_target_cluster(
    clusters: Clusters,
) -> None:
    await clusters.put(annotations=clusters.to_target, data={"other": b"stays"})
    async with clusters.start():
        target = await clusters.moved()
        await clusters.settle()
        clusters.taken()
        await clusters.reconcile()
        assert clusters.taken() == []
    assert target["type"] == "Opaque"
    assert labels_of(target) == annotations_of(target) == {}
    assert _claims(token_of(target))["aud"] == ["gardener"]
    assert data_of(await clusters.secret(), "other") == b"stays"


async def test_annotations_added_later_move_the_token(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = await clusters.issued()
        assert renewal(first) > clusters.clock.now()
        await clusters.edit({"metadata": {"annotations": clusters.to_target}})
        assert token_of(await clusters.moved())
        # Removing the annotations moves the token back; the Secret in the target cluster stays.
        await clusters.edit({"metadata": {"annotations": dict.fromkeys(clusters.to_target)}})
        await clusters.issued()
        await clusters.target_secret()


async def test_a_kubeconfig_moves_with_its_token(clusters: Clusters) -> None:
    await clusters.put(annotations=clusters.to_target, data={"kubeconfig": kubeconfig_with()})
    async with clusters.start():
        target = await clusters.moved()
        assert kubeconfig_in(target)["clusters"][0]["cluster"]["unknown-field"] == {"kept": True}
        assert token_of(target)
        # Its owner replaces the CA: the new kubeconfig is moved, too.
        newer = kubeconfig_with(ca=b"a new CA")
        await clusters.edit({"data": encoded({"kubeconfig": newer})})
        target = await clusters.moved()
        ca = kubeconfig_in(target)["clusters"][0]["cluster"]["certificate-authority-data"]
        assert base64.b64decode(ca) == b"a new CA"
        assert token_of(target)


@pytest.mark.parametrize("left_out", [names.TARGET_NAME, names.TARGET_NAMESPACE])
async def test_a_single_target_annotation_is_ignored(clusters: Clusters, left_out: str) -> None:
    await clusters.put(annotations=clusters.to_target | {left_out: None})
    async with clusters.start():
        await clusters.issued()
    with pytest.raises(NotFound):
        await clusters.target_secret()


# 8


async def test_the_ca_is_injected_and_a_wrong_ca_replaced(clusters: Clusters) -> None:
    await clusters.put(annotations={names.INJECT_CA: "true"})
    async with clusters.start(ca_bundle=b"the CA"):
        secret = await clusters.issued()
        assert data_of(secret, "bundle.crt") == b"the CA"
        await clusters.edit({"data": encoded({"bundle.crt": b"wrong"})})
        repaired = await clusters.issued(other_than=token_of(secret))
        assert data_of(repaired, "bundle.crt") == b"the CA"


async def test_the_ca_is_injected_into_a_kubeconfig(clusters: Clusters) -> None:
    content = kubeconfig_with("old", ca=b"wrong")
    await clusters.put(annotations={names.INJECT_CA: "T"}, data={"kubeconfig": content})
    async with clusters.start(ca_bundle=b"the CA"):
        secret = await clusters.issued(other_than=b"old")
        ca = kubeconfig_in(secret)["clusters"][0]["cluster"]["certificate-authority-data"]
        assert base64.b64decode(ca) == b"the CA"
        assert "bundle.crt" not in map_at(secret, "data")


async def test_a_ca_that_is_no_longer_requested_is_removed_at_the_next_renewal(
    clusters: Clusters,
) -> None:
    await clusters.put(annotations={names.INJECT_CA: "yes"}, data={"bundle.crt": b"old"})
    async with clusters.start(ca_bundle=b"the CA"):
        assert "bundle.crt" not in map_at(await clusters.issued(), "data")
