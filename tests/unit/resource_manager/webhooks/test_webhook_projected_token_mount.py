"""Projected tokens in pods: spec 12 §5."""

from typing import Any

import pytest

from pergola.admission.review import Verdict
from pergola.api.objects import JsonObject, Key
from pergola.kube.errors import NotFound, Unreachable
from pergola.resource_manager.webhooks.projected_token_mount import (
    EXPIRATION,
    ProjectedTokenMount,
)
from tests.support.reviews import patched, pod, review_of

MOUNT = {
    "name": "kube-api-access-gardener",
    "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    "readOnly": True,
}


class Accounts:
    """ServiceAccounts, with whether each mounts its token; records look-ups."""

    def __init__(self, **accounts: bool) -> None:
        self.accounts = accounts
        self.asked: list[Key] = []

    async def mounts_token(self, account: Key) -> bool:
        self.asked.append(account)
        if account.name not in self.accounts:
            text = f'serviceaccounts "{account.name}" not found'
            raise NotFound(404, {"message": text, "reason": "NotFound"})
        return self.accounts[account.name]


async def reviewed(given: JsonObject, accounts: Accounts | None = None) -> Verdict:
    handler = ProjectedTokenMount((accounts or Accounts(web=False)).mounts_token)
    return await handler(review_of(given))


def web(**spec: Any) -> JsonObject:
    return pod(serviceAccountName="web", **spec)


def annotated(value: object) -> JsonObject:
    return web() | {"metadata": {"namespace": "kube-system", "annotations": {EXPIRATION: value}}}


async def test_volume_and_mounts_follow_the_specification() -> None:
    given = web(
        initContainers=[{"name": "i"}],
        containers=[{"name": "a"}, {"name": "b", "volumeMounts": [{"mountPath": "/data"}]}],
        ephemeralContainers=[{"name": "e"}],
        securityContext={"runAsUser": 3},
    )
    spec = patched(given, await reviewed(given))["spec"]
    assert spec == {
        "serviceAccountName": "web",
        "securityContext": {"runAsUser": 3},
        "ephemeralContainers": [{"name": "e"}],
        "initContainers": [{"name": "i", "volumeMounts": [MOUNT]}],
        "containers": [
            {"name": "a", "volumeMounts": [MOUNT]},
            {"name": "b", "volumeMounts": [{"mountPath": "/data"}, MOUNT]},
        ],
        "volumes": [
            {
                "name": "kube-api-access-gardener",
                "projected": {
                    "defaultMode": 420,
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 43200, "path": "token"}},
                        {
                            "configMap": {
                                "name": "kube-root-ca.crt",
                                "items": [{"key": "ca.crt", "path": "ca.crt"}],
                            }
                        },
                        {
                            "downwardAPI": {
                                "items": [
                                    {
                                        "fieldRef": {
                                            "apiVersion": "v1",
                                            "fieldPath": "metadata.namespace",
                                        },
                                        "path": "namespace",
                                    }
                                ]
                            }
                        },
                    ],
                },
            }
        ],
    }


@pytest.mark.parametrize(("value", "seconds"), [("8998", 8998), ("1", 1), ("+600", 600)])
async def test_an_annotation_sets_the_expiration(value: str, seconds: int) -> None:
    given = annotated(value)
    (volume,) = patched(given, await reviewed(given))["spec"]["volumes"]
    token = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert token["expirationSeconds"] == seconds


@pytest.mark.parametrize("value", ["abc", "", "12h", "1_000", " 600", "9223372036854775808"])
async def test_an_annotation_that_is_not_a_number_is_refused(value: str) -> None:
    verdict = await reviewed(annotated(value))
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 403, "Forbidden")
    assert verdict.message.endswith(
        f'annotation {EXPIRATION} is not a whole number of seconds: "{value}"'
    )


async def test_the_configured_expiration_is_the_default() -> None:
    given = web()
    handler = ProjectedTokenMount(Accounts(web=False).mounts_token, 601)
    (volume,) = patched(given, await handler(review_of(given)))["spec"]["volumes"]
    token = volume["projected"]["sources"][0]["serviceAccountToken"]
    assert token["expirationSeconds"] == 601


async def test_a_pod_is_refused_until_its_account_exists() -> None:
    accounts = Accounts()
    verdict = await reviewed(web(), accounts)
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 404, "NotFound")
    assert verdict.message == (
        'serviceaccounts "web" not found '
        "(projected-token-mount: cannot read ServiceAccount kube-system/web)"
    )
    accounts.accounts["web"] = False
    assert (await reviewed(web(), accounts)).edits


async def test_a_pod_is_refused_while_its_account_cannot_be_read() -> None:
    async def unreachable(account: Key) -> bool:
        raise Unreachable("no answer")

    verdict = await ProjectedTokenMount(unreachable)(review_of(web()))
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 403, "Forbidden")
    assert verdict.message.startswith("no answer (")


async def test_a_pod_with_a_token_volume_is_unchanged() -> None:
    given = web(volumes=[{"name": "data"}, {"name": "kube-api-access-2138h"}])
    verdict = await reviewed(given)
    assert verdict.edits == ()
    assert verdict.because == "the volume kube-api-access-2138h already contains a token"


@pytest.mark.parametrize(
    ("account", "automount", "volume", "mounted"),
    [
        (True, None, None, False),
        (True, True, "kube-api-access-1", False),
        (True, False, None, False),
        (False, None, None, True),
        (False, True, None, True),
        (False, None, "kube-api-access-1", False),
        (False, True, "kube-api-access-1", False),
        (False, False, None, False),
        (False, False, "kube-api-access-1", False),
    ],
)
async def test_account_and_pod_together_decide_about_the_mount(
    *, account: bool, automount: bool | None, volume: str | None, mounted: bool
) -> None:
    volumes = [{"name": volume}] if volume else []
    given = web(automountServiceAccountToken=automount, volumes=volumes)
    verdict = await reviewed(given, Accounts(web=account))
    assert verdict.allowed
    assert bool(verdict.edits) is mounted
    assert bool(verdict.because) is not mounted


@pytest.mark.parametrize("name", [None, "", "default"])
async def test_the_default_account_is_not_looked_up(name: str | None) -> None:
    accounts = Accounts()
    verdict = await reviewed(pod(serviceAccountName=name), accounts)
    assert (verdict.edits, accounts.asked) == ((), [])
    assert verdict.because == "the pod has no ServiceAccount of its own"


async def test_the_namespace_is_taken_from_the_request() -> None:
    accounts, given = Accounts(web=False), web()
    del given["metadata"]["namespace"]
    handler = ProjectedTokenMount(accounts.mounts_token)
    await handler(review_of(given, namespace="other"))
    assert accounts.asked == [Key("other", "web")]


@pytest.mark.parametrize("path", [MOUNT["mountPath"], f"{MOUNT['mountPath']}/"])
async def test_containers_with_a_mount_at_the_path_are_skipped(path: str) -> None:
    own = {"name": "a", "volumeMounts": [{"name": "mine", "mountPath": path}]}
    given = web(containers=[own, {"name": "b"}])
    assert patched(given, await reviewed(given))["spec"]["containers"] == [
        own,
        {"name": "b", "volumeMounts": [MOUNT]},
    ]
    verdict = await reviewed(web(containers=[own]))
    assert (verdict.edits, verdict.allowed) == ((), True)


async def test_a_mount_of_the_volume_by_hand_gets_the_volume() -> None:
    own = {"name": "a", "volumeMounts": [MOUNT]}
    given = web(containers=[own])
    found = patched(given, await reviewed(given))["spec"]
    assert found["containers"] == [own]
    assert [volume["name"] for volume in found["volumes"]] == [MOUNT["name"]]


async def test_a_second_pass_adds_nothing() -> None:
    given = web()
    assert (await reviewed(patched(given, await reviewed(given)))).edits == ()


@pytest.mark.parametrize("mounts", [True, False])
async def test_a_cached_account_gives_the_same_result_without_waiting(*, mounts: bool) -> None:
    waiting = ProjectedTokenMount(Accounts(web=mounts).mounts_token)
    prompt = ProjectedTokenMount(Accounts().mounts_token, known=lambda _: mounts)
    unnamed = {**web(), "spec": {"serviceAccountName": 1}}
    for given in (web(), pod()):
        request = review_of(given)
        assert prompt.at_once(request) == await waiting(request)
    assert waiting.at_once(review_of(web())) is None
    assert prompt.at_once(review_of(unnamed)) is None
