"""The TokenRequestor on two real API servers: spec 11 §1.8, in its order.

The tests for 6 to 8, about the placement of tokens, are in test_token_placement.py.
"""

import base64
from datetime import timedelta

import pytest

from pergola.api.kinds import CONFIG_MAP, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    uid_of,
)
from pergola.kube.errors import Forbidden
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.observe import (
    _claims,
    data_of,
    token_of,
)
from pergola.runtime.controlling.controller import Again
from tests.support.token_clusters import (
    NEARLY,
    TWELVE_HOURS,
    Clusters,
    Recording,
    encoded,
    has_renewal,
    kubeconfig_in,
    kubeconfig_with,
    renewal,
)

# 1


async def test_a_secret_gets_a_token_that_the_target_cluster_accepts(
    clusters: Clusters,
) -> None:
    await allow_config_maps(clusters)
    await clusters.put()
    async with clusters.start(audiences=()):
        secret = await clusters.issued()
        await clusters.settle()
        account = await clusters.account()
        assert account["automountServiceAccountToken"] is False
        assert abs(renewal(secret) - clusters.clock.now() - 0.8 * TWELVE_HOURS) < NEARLY
        remaining = renewal(secret) - clusters.clock.now()
        assert await clusters.reconcile() == Again(remaining.total_seconds())
    async with clusters.as_bearer(data_of(secret, "token")) as robot:
        me = await robot.create(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        )
        assert me["status"]["userInfo"]["username"] == (
            f"system:serviceaccount:{clusters.target_namespace}:robot"
        )
        assert await robot.list(CONFIG_MAP, clusters.target_namespace) == []
        with pytest.raises(Forbidden):
            await robot.list(SECRET, clusters.target_namespace)


async def allow_config_maps(clusters: Clusters) -> None:
    rbac, metadata = "rbac.authorization.k8s.io", {"name": "read-config-maps"}
    metadata["namespace"] = clusters.target_namespace
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    role = {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    await clusters.target.create(role)
    await clusters.target.create(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
            "subjects": [
                {
                    "kind": "ServiceAccount",
                    "name": "robot",
                    "namespace": clusters.target_namespace,
                }
            ],
        }
    )


async def test_tokens_are_for_the_audience_gardener(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        secret = await clusters.issued()
    assert _claims(data_of(secret, "token"))["aud"] == ["gardener"]


async def test_issuing_a_token_takes_three_writes_and_nothing_follows(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
        await clusters.settle()
        robot, access = f"{clusters.target_namespace}/robot", f"{clusters.namespace}/access"
        assert sorted(clusters.taken()) == [
            f"create ServiceAccount {robot}",
            f"create/token ServiceAccount {robot}",
            f"patch Secret {access}",
        ]
        await clusters.edit({"metadata": {"annotations": {"somebody": "else"}}})
        await clusters.settle()
        assert clusters.taken() == []


# 2


@pytest.mark.parametrize(
    ("expiration", "seconds", "renews_after"),
    [("10m", 600, timedelta(minutes=8)), ("100h", 360000, timedelta(hours=19, minutes=12))],
)
async def test_the_annotation_sets_the_lifetime_of_a_token(
    clusters: Clusters, expiration: str, seconds: int, renews_after: timedelta
) -> None:
    await clusters.put(annotations={names.EXPIRATION: expiration})
    async with clusters.start():
        secret = await clusters.issued()
    claims = _claims(data_of(secret, "token"))
    assert claims["exp"] - claims["iat"] == seconds
    assert abs(renewal(secret) - clusters.clock.now() - renews_after) < NEARLY


async def test_an_unparsable_duration_is_reported_and_nothing_is_requested(
    clusters: Clusters,
) -> None:
    before = await clusters.put(annotations={names.EXPIRATION: "unparsable"})
    async with clusters.start():
        note = await clusters.warning("InvalidTokenRequest")
        await clusters.settle()
        assert f"metadata.annotations[{names.EXPIRATION}]" in note
        assert 'invalid duration "unparsable"' in note
        assert clusters.taken() == []
        assert await clusters.secret() == before
        # After the annotation is repaired, the token is issued.
        await clusters.annotate(EXPIRATION="10m")
        await clusters.issued()


# 3


async def test_a_valid_token_is_kept_until_its_renewal(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
        in_a_minute = clusters.clock.now() + timedelta(minutes=1)
        await clusters.annotate(RENEW=in_a_minute.strftime("%Y-%m-%dT%H:%M:%SZ"))
        await clusters.settle()
        clusters.taken()
        assert await clusters.reconcile() == Again(60.0)
        assert clusters.taken() == []


async def test_a_new_process_reviews_a_token_once_and_writes_nothing(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
    clusters.taken()
    async with clusters.start():
        await clusters.settle()
        assert clusters.taken() == ["create TokenReview "]
        await clusters.reconcile()
        assert clusters.taken() == []


# 4


async def test_a_removed_token_is_replaced(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.edit({"data": {"token": None}})
        assert token_of(await clusters.issued(other_than=first))


async def test_a_kubeconfig_without_its_token_gets_a_new_one(clusters: Clusters) -> None:
    await clusters.put(data={"kubeconfig": kubeconfig_with()})
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.edit({"data": encoded({"kubeconfig": kubeconfig_with()})})
        assert token_of(await clusters.issued(other_than=first))


async def test_a_token_that_the_api_server_rejects_is_replaced(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        body, _, signature = first.rpartition(b".")
        tampered = body + b"." + signature[::-1]
        await clusters.edit({"data": encoded({"token": tampered})})
        assert token_of(await clusters.issued(other_than=tampered))


async def test_an_invalid_token_is_replaced(clusters: Clusters) -> None:
    future = clusters.clock.now() + timedelta(hours=1)
    annotations = {names.RENEW: future.strftime("%Y-%m-%dT%H:%M:%SZ")}
    await clusters.put(annotations=annotations, data={"token": b"foo"})
    async with clusters.start():
        assert token_of(await clusters.issued(other_than=b"foo"))


async def test_a_recreated_service_account_gets_a_new_token_at_once(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.delete_account()
        await clusters.target.create(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": "robot", "namespace": clusters.target_namespace},
            }
        )
        second = await clusters.issued(other_than=first)
        bound = _claims(token_of(second))["kubernetes.io"]["serviceaccount"]["uid"]
        assert bound == uid_of(await clusters.account())


async def test_a_deleted_service_account_is_recreated_in_the_next_run_and_not_earlier(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.settle()
        await clusters.delete_account()
        await clusters.settle()
        assert not await clusters.has_account()
        await clusters.reconcile()
        assert token_of(await clusters.issued(other_than=first))
        assert await clusters.has_account()


async def test_another_service_account_name_causes_a_new_token(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.annotate(NAME="other")
        second = token_of(await clusters.issued(other_than=first))
    assert _claims(second)["sub"] == f"system:serviceaccount:{clusters.target_namespace}:other"


# 5


async def test_a_renewal_time_in_the_past_causes_a_new_token(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.annotate(RENEW="2021-10-04T19:36:00Z")
        await clusters.issued(other_than=first)


async def test_without_a_renewal_time_a_new_token_is_issued_at_once(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.annotate(RENEW=None)
        await clusters.issued(other_than=first)


async def test_a_token_is_renewed_when_it_is_due(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start(minimum_interval=0.0):
        first = await clusters.issued()
        await clusters.settle()
        clusters.clock.set(renewal(first) - timedelta(seconds=1))
        clusters.taken()
        assert await clusters.reconcile() == Again(1.0)
        assert clusters.taken() == []
        clusters.clock.set(renewal(first))
        await clusters.reconcile()
        second = await clusters.issued(other_than=token_of(first))
        assert renewal(second) > renewal(first)


async def test_an_invalid_renewal_time_is_reported(clusters: Clusters) -> None:
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
        await clusters.settle()
        clusters.taken()
        await clusters.annotate(RENEW="invalid-format")
        note = await clusters.warning("InvalidTokenRequest")
        assert "could not parse renew timestamp" in note
        assert "invalid-format" in note
        await clusters.settle()
        assert clusters.taken() == []


# 9


async def test_an_automounting_service_account_is_corrected_at_the_next_request(
    clusters: Clusters,
) -> None:
    await clusters.target.create(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": "robot",
                "namespace": clusters.target_namespace,
                "labels": {"somebody": "else"},
            },
            "automountServiceAccountToken": True,
        }
    )
    await clusters.put()
    async with clusters.start():
        await clusters.issued()
        account = await clusters.account()
        assert account["automountServiceAccountToken"] is False
        assert labels_of(account) == {"somebody": "else"}


async def test_the_annotated_labels_are_set_and_other_labels_are_kept(clusters: Clusters) -> None:
    await clusters.put(annotations={names.LABELS: '{"a": "1", "b": "2"}'})
    async with clusters.start():
        first = token_of(await clusters.issued())
        assert labels_of(await clusters.account()) == {"a": "1", "b": "2"}
        await clusters.target.patch(
            SERVICE_ACCOUNT,
            Key(clusters.target_namespace, "robot"),
            {"metadata": {"labels": {"somebody": "else"}}},
        )
        await clusters.annotate(LABELS='{"a": "3"}', RENEW=None)
        second = token_of(await clusters.issued(other_than=first))
        assert labels_of(await clusters.account()) == {"a": "3", "somebody": "else"}
        await clusters.annotate(LABELS=None, RENEW=None)
        await clusters.issued(other_than=second)
        assert labels_of(await clusters.account()) == {"somebody": "else"}


async def test_labels_that_the_api_server_refuses_are_reported(clusters: Clusters) -> None:
    await clusters.put(annotations={names.LABELS: '{"a": "no label!"}'})
    async with clusters.start():
        assert "no label!" in await clusters.warning("InvalidTokenRequest")
        await clusters.settle()
        assert not has_renewal(await clusters.secret())


# 10


async def test_without_the_purpose_nothing_happens_until_it_is_set(clusters: Clusters) -> None:
    await clusters.put(labels={names.PURPOSE: None})
    async with clusters.start():
        await clusters.settle()
        assert clusters.taken() == []
        await clusters.edit({"metadata": {"labels": {names.PURPOSE: "token-requestor"}}})
        await clusters.issued()


@pytest.mark.parametrize("deletes", [False, True])
async def test_the_service_account_and_target_outlive_the_secret(
    clusters: Clusters, deletes: bool
) -> None:
    await clusters.put(annotations=clusters.to_target)
    async with clusters.start():
        await clusters.moved()
        await clusters.settle()
        clusters.taken()
        if deletes:
            await clusters.source.delete(SECRET, Key(clusters.namespace, "access"))
        else:
            await clusters.edit({"metadata": {"labels": {names.PURPOSE: None}}})
        await clusters.settle()
        assert clusters.taken() == []
        assert await clusters.has_account()
        await clusters.target_secret()


# 11


async def test_another_class_is_left_alone_until_it_changes(clusters: Clusters) -> None:
    await clusters.put(labels={names.CLASS: "bar"})
    await clusters.put("none", labels={names.CLASS: None})
    async with clusters.start(resource_class="foo"):
        await clusters.settle()
        assert clusters.taken() == []
        await clusters.edit({"metadata": {"labels": {names.CLASS: "foo"}}})
        await clusters.issued()
        assert not has_renewal(await clusters.secret("none"))


async def test_an_instance_for_all_classes_serves_every_secret(clusters: Clusters) -> None:
    await clusters.put(labels={names.CLASS: "bar"})
    await clusters.put("none", labels={names.CLASS: None})
    async with clusters.start(resource_class="*"):
        await clusters.issued()
        await clusters.issued("none")


# 12


async def test_concurrent_writes_are_never_overwritten(
    clusters: Clusters,
) -> None:
    await clusters.put(data={"kubeconfig": kubeconfig_with(ca=b"old")})

    class Interrupted(Recording):
        async def create_subresource(
            self, gvk: GroupVersionKind, key: Key, subresource: str, body: JsonObject
        ) -> JsonObject:
            if not interrupted:
                interrupted.append("once")
                await clusters.edit({"data": encoded({"kubeconfig": kubeconfig_with(ca=b"new")})})
            return await super().create_subresource(gvk, key, subresource, body)

    interrupted: list[str] = []
    clusters.target_recorder = Interrupted(clusters.target_recorder._transport)
    async with clusters.start():
        secret = await clusters.issued()
    assert interrupted
    ca = kubeconfig_in(secret)["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(ca) == b"new"


# 13


async def test_a_fixed_namespace_takes_precedence_over_the_annotation(clusters: Clusters) -> None:
    await clusters.put(annotations={names.NAMESPACE: "ignored"})
    await clusters.put("bare", annotations={names.NAMESPACE: None, names.NAME: "other"})
    async with clusters.start(fixed_namespace=clusters.target_namespace):
        await clusters.issued()
        await clusters.issued("bare")
        assert await clusters.has_account()
        assert await clusters.has_account("other")


async def test_service_accounts_outside_the_watched_namespaces_are_served_too(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start(target_namespaces=("kube-public",)):
        await clusters.issued()
        await clusters.settle()
        clusters.taken()
        await clusters.reconcile()
        assert clusters.taken() == []


# 14


async def test_while_the_target_is_unreachable_nothing_changes_and_runs_are_retried(
    clusters: Clusters,
) -> None:
    await clusters.put()
    async with clusters.start(minimum_interval=0.0):
        before = await clusters.issued()
        await clusters.settle()
        clusters.target_recorder.unreachable = True
        clusters.clock.set(renewal(before) + timedelta(minutes=1))
        await clusters.edit({"metadata": {"annotations": {"somebody": "else"}}})
        note = await clusters.warning("TokenRenewalFailed")
        assert "connection refused" in note
        present = await clusters.secret()
        assert map_at(present, "data") == map_at(before, "data")
        assert renewal(present) == renewal(before)
        clusters.target_recorder.unreachable = False
        await clusters.issued(other_than=token_of(before))
