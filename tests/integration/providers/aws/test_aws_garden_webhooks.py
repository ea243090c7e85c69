"""Admission of the garden's objects on AWS at a real API server, as the account of the chart.

The sandbox is shared: the webhooks select only objects with a label of the test.
"""

import base64
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.admission.webhook import Webhook
from pergola.api.kinds import GARDENER_CORE, SEED, SHOOT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.extensions.garden import CLOUD_PROFILE, NAMESPACED_CLOUD_PROFILE, Garden
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Invalid, KubeError, NotFound
from pergola.kube.kubeconfig import load
from pergola.providers.aws.admission.validators import INTERNAL_SECRET
from pergola.providers.aws.admission.webhooks import admission_webhooks
from pergola.providers.aws.workload_identity import WORKLOAD_IDENTITY
from pergola.runtime.metrics import Metrics
from pergola.sandbox.helm import render
from pergola.testing.crds import definition, serve
from pergola.testing.waiting import running
from pergola.testing.world import RecordingClient
from tests.support.ports import held_port
from tests.support.service_accounts import service_account_config, until_granted

CHART = Path(__file__).parents[4] / "charts" / "extension-admission-virtual"
CORE = f"{GARDENER_CORE}/v1beta1"
SECURITY = WORKLOAD_IDENTITY.api_version
AWS = "aws.provider.extensions.gardener.cloud/v1alpha1"
CLOUD_LABEL = "provider.extensions.gardener.cloud/aws"
PANICS = "controller_runtime_webhook_panics_total"
SECRET_BINDING = GroupVersionKind(GARDENER_CORE, "v1beta1", "SecretBinding")
BACKUP_BUCKET = GroupVersionKind(GARDENER_CORE, "v1beta1", "BackupBucket")
CREDENTIALS_BINDING = GroupVersionKind(WORKLOAD_IDENTITY.group, "v1alpha1", "CredentialsBinding")
KEYS = {"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "s" * 40}
BUCKET: JsonObject = {
    "apiVersion": AWS,
    "kind": "BackupBucketConfig",
    "immutability": {
        "retentionType": "bucket",
        "retentionPeriod": "48h",
        "mode": "compliance",
    },
}
REGIONS = [{"name": "eu-west-1", "ami": "ami-1"}]


def definitions() -> list[JsonObject]:
    plurals = {WORKLOAD_IDENTITY: "workloadidentities"}
    clustered = (CLOUD_PROFILE, SEED, BACKUP_BUCKET)
    namespaced = (SHOOT, SECRET_BINDING, CREDENTIALS_BINDING, WORKLOAD_IDENTITY, INTERNAL_SECRET)
    return [
        *(definition(gvk, scope="Cluster") for gvk in clustered),
        *(definition(gvk, plural=plurals.get(gvk, "")) for gvk in namespaced),
        definition(NAMESPACED_CLOUD_PROFILE, has_status=True),
    ]


class Site:
    """The webhooks for objects with a label of their own."""

    def __init__(self, client: RecordingClient, namespace: str, port: int) -> None:
        self.client = client
        self.namespace = namespace
        self.token = secrets.token_hex(3)
        self.metrics = Metrics()
        self._port = port

    @property
    def component(self) -> str:
        return f"admission-aws-{self.token}"

    @asynccontextmanager
    async def serving(self, limited: Client) -> AsyncIterator[None]:
        """Serve the webhooks, which read the garden as the account of the chart."""
        garden = Garden(limited)
        webhooks = [self._own(each) for each in admission_webhooks(garden)]
        known = garden.unit()
        settings = WebhookSettings(
            mode="url",
            url=f"127.0.0.1:{self._port}",
            namespace=self.namespace,
            host="127.0.0.1",
            port=self._port,
        )
        found = ExtensionWebhooks(self.client, self.component, webhooks, settings, self.metrics)
        async with running(known):
            await known.synced()
            async with found.served(), running(*found.units, *found.leading()):
                await self._effective()
                yield
                assert self.metrics.registry.get_sample_value(PANICS) in (None, 0.0)

    def _own(self, webhook: Webhook) -> Webhook:
        registration = webhook.registration
        labels = {**registration.object_selector["matchLabels"], "test": self.token}
        return replace(
            webhook,
            registration=replace(registration, object_selector={"matchLabels": labels}),
        )

    async def _effective(self) -> None:
        """Wait until the API server calls all three webhooks."""
        await self.refusal(self.secret("probe", accessKeyID=""))
        await self.refusal(self.obj("CloudProfile", {"spec": {}}, name="probe"))
        profile = self.cloud_profile({"regions": REGIONS})
        while True:
            stored = await self.client.create(profile, dry_run=True)
            [image] = stored["spec"]["machineImages"]
            if "capabilityFlavors" in image["versions"][0]:
                return

    async def refusal(self, obj: JsonObject) -> Invalid:
        """Wait until the API server refuses an object."""
        while True:
            try:
                await self.client.create(obj, dry_run=True)
            except Invalid as error:
                return error
            except KubeError:
                await self.client.get_raw("/version")

    def obj(self, kind: str, content: JsonObject, *, name: str = "", api: str = CORE) -> JsonObject:
        """Return an object with the labels that Gardener and the test set."""
        is_clustered = kind in ("CloudProfile", "Seed", "BackupBucket")
        labels = {CLOUD_LABEL: "true", "test": self.token}
        metadata: JsonObject = {"name": name or f"aws-{self.token}", "labels": labels}
        if not is_clustered:
            metadata["namespace"] = self.namespace
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}

    def secret(self, name: str = "cloud", **data: str) -> JsonObject:
        encoded = {k: base64.b64encode(v.encode()).decode() for k, v in data.items()}
        found = self.obj("Secret", {"data": encoded}, name=name, api="v1")
        found["metadata"]["labels"] = {
            "provider.shoot.gardener.cloud/aws": "true",
            "test": self.token,
        }
        return found

    def cloud_profile(self, mapped: JsonObject) -> JsonObject:
        return self.obj(
            "CloudProfile",
            {
                "spec": {
                    "type": "aws",
                    "machineCapabilities": [{"name": "architecture", "values": ["amd64", "arm64"]}],
                    "machineImages": [
                        {
                            "name": "gardenlinux",
                            "versions": [
                                {"version": "1.0.0", "architectures": ["amd64"]},
                            ],
                        }
                    ],
                    "providerConfig": {
                        "apiVersion": AWS,
                        "kind": "CloudProfileConfig",
                        "machineImages": [
                            {"name": "gardenlinux", "versions": [{"version": "1.0.0", **mapped}]}
                        ],
                    },
                }
            },
        )

    def own_profile(self) -> JsonObject:
        images = [{"name": "mine", "versions": [{"version": "1", "regions": REGIONS}]}]
        return self.obj(
            "NamespacedCloudProfile",
            {
                "spec": {
                    "parent": {"kind": "CloudProfile", "name": f"aws-{self.token}"},
                    "machineImages": [{"name": "mine", "versions": [{"version": "1"}]}],
                    "providerConfig": {
                        "apiVersion": AWS,
                        "kind": "CloudProfileConfig",
                        "machineImages": images,
                    },
                }
            },
            name="own",
        )

    def reference(self, kind: str = "Secret", api: str = "v1", name: str = "cloud") -> JsonObject:
        return {"apiVersion": api, "kind": kind, "name": name, "namespace": self.namespace}

    def binding(self, reference: JsonObject) -> JsonObject:
        content = {"provider": {"type": "aws"}, "credentialsRef": reference}
        return self.obj("CredentialsBinding", content, api=SECURITY)

    def secret_binding(self, name: str = "cloud") -> JsonObject:
        reference = {"name": name, "namespace": self.namespace}
        return self.obj("SecretBinding", {"provider": {"type": "aws"}, "secretRef": reference})

    def identity(self, role: Any = "arn:aws:iam::123456789012:role/own") -> JsonObject:
        config = {"apiVersion": AWS, "kind": "WorkloadIdentityConfig", "roleARN": role}
        system = {"type": "aws", "providerConfig": config}
        content = {"spec": {"audiences": ["a"], "targetSystem": system}}
        return self.obj("WorkloadIdentity", content, name="cloud", api=SECURITY)

    def bucket(self, **spec: Any) -> JsonObject:
        found = {"provider": {"type": "aws"}, "credentialsRef": self.reference()}
        return self.obj("BackupBucket", {"spec": {**found, "providerConfig": BUCKET, **spec}})

    def seed(self, **backup: Any) -> JsonObject:
        found = {"provider": "aws", "credentialsRef": self.reference(), "providerConfig": BUCKET}
        return self.obj("Seed", {"spec": {"backup": {**found, **backup}}})

    async def grant(self) -> None:
        """Create an account with the permissions of the chart."""
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}
        account = {"name": "default", "namespace": self.namespace}
        values: JsonObject = {
            "extension": "aws",
            "namespace": self.namespace,
            "gardener": {"virtualCluster": {"serviceAccount": account}},
        }
        role = next(obj for obj in render(CHART, values) if obj["kind"] == "ClusterRole")
        name = f"admission-aws-{self.token}"
        role["metadata"]["name"] = name
        group = "rbac.authorization.k8s.io"
        binding: JsonObject = {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }
        for obj in (role, binding):
            await self.client.apply(obj, manager="test", force=True)
        await until_granted(self.client, Key(self.namespace, "default"))

    async def clean_up(self) -> None:
        names = (f"gardener-extension-{self.component}",)
        own = f"aws-{self.token}"
        for gvk, name in (
            *((gvk, name) for gvk in (MUTATING, VALIDATING) for name in names),
            *((gvk, own) for gvk in (CLOUD_PROFILE, SEED, BACKUP_BUCKET)),
        ):
            with suppress(NotFound):
                await self.client.delete(gvk, Key("", name))


@pytest.fixture
async def site(kubeconfig: Path, namespace: str) -> AsyncIterator[Site]:
    config = load(kubeconfig)
    with held_port() as port:
        async with RecordingClient.connect(config) as client:
            await serve(client, *definitions())
            own = Site(client, namespace, port)
            await own.grant()
            limited = await service_account_config(config, namespace)
            async with Client.connect(limited) as reading, own.serving(reading):
                yield own
            await own.clean_up()


async def test_what_aws_cannot_use_is_refused_with_one_sentence(site: Site) -> None:
    await site.client.create({**site.secret(**KEYS), "metadata": unlabelled(site, "cloud")})
    await site.client.create({**site.secret(a="b"), "metadata": unlabelled(site, "wrong")})
    short = {**BUCKET, "immutability": {**BUCKET["immutability"], "retentionPeriod": "36h"}}
    period = 'immutability.retentionPeriod: Invalid value: "36h0m0s": must be a multiple of 24h'
    role = "arn:aws:iam::1:role/x"
    no_ami = {"regions": [{"name": "eu-west-1"}]}
    wrong_key = {**KEYS, "secretAccessKey": "s" * 39}
    refused = [
        (site.bucket(providerConfig=short), f"spec.providerConfig.{period}"),
        (site.seed(providerConfig=short), f"spec.backup.providerConfig.{period}"),
        (site.identity(role), f'providerConfig.roleARN: Invalid value: "{role}": does not match'),
        (site.cloud_profile(no_ami), "versions[0].regions[0].ami: Required value: must not be"),
        (site.secret(**wrong_key), "[secretAccessKey]: Invalid value: (hidden): must have 40 char"),
        (site.binding(site.reference(name="wrong")), f"(in Secret {site.namespace}/wrong)"),
        (site.secret_binding("nothing"), f"Secret {site.namespace}/nothing does not exist: create"),
        (site.own_profile(), f"spec.parent.name: CloudProfile aws-{site.token} does not exist"),
    ]
    for obj, sentence in refused:
        with pytest.raises(ApiError, match=re.escape(sentence)) as error:
            await site.client.create(obj, dry_run=True)
        assert "s" * 39 not in str(error.value)


async def test_what_aws_can_use_is_admitted_with_the_permissions_of_the_chart(site: Site) -> None:
    await site.client.create(site.secret(**KEYS))
    internal = {**site.secret(**KEYS), "apiVersion": CORE, "kind": "InternalSecret"}
    await site.client.create(internal)
    await site.client.create(site.identity())
    for obj in (
        site.bucket(),
        site.seed(),
        site.secret_binding(),
        site.binding(site.reference()),
        site.binding(site.reference("InternalSecret", CORE)),
        site.binding(site.reference("WorkloadIdentity", SECURITY)),
    ):
        await site.client.create(obj, dry_run=True)


async def test_images_get_flavors_and_are_merged_into_the_status(site: Site) -> None:
    stored = await site.client.create(site.cloud_profile({"regions": REGIONS}))
    [image] = stored["spec"]["machineImages"]
    flavors = [{"architecture": ["amd64"]}]
    assert image["versions"][0]["capabilityFlavors"] == flavors
    # Right after its parent, which the cache may lack.
    own = await site.client.create(site.own_profile())
    assert own["spec"]["machineImages"][0]["versions"][0]["capabilityFlavors"] == flavors
    status: JsonObject = {
        "observedGeneration": own["metadata"]["generation"],
        "cloudProfileSpec": stored["spec"],
    }
    key = Key(site.namespace, "own")
    after = await site.client.patch(
        NAMESPACED_CLOUD_PROFILE, key, {"status": status}, subresource="status"
    )
    config = map_at(after, "status", "cloudProfileSpec", "providerConfig")
    assert [each["name"] for each in maps_at(config, "machineImages")] == ["gardenlinux", "mine"]


async def test_retention_in_compliance_mode_is_not_shortened(site: Site) -> None:
    await site.client.create(site.bucket())
    shorter = {"spec": {"providerConfig": {"immutability": {"retentionPeriod": "24h"}}}}
    key = Key("", f"aws-{site.token}")
    with pytest.raises(Invalid, match="cannot be shortened from 48h0m0s to 24h0m0s"):
        await site.client.patch(BACKUP_BUCKET, key, shorter)
    off: JsonObject = {"spec": {"providerConfig": {"immutability": None}}}
    await site.client.patch(BACKUP_BUCKET, key, off)


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"machineImages": [value]}
    return value


ODD: dict[str, Any] = {
    "null": None,
    "empty": {},
    "empty list": [],
    "empty text": "",
    "zero": 0,
    "false": False,
    "a fraction": 1.5,
    "a large number": 2**62,
    "very long": "x" * 500_000,
    "very deep": deep(110),  # the client encodes at most 254 levels
    "a list of nulls": [None] * 100,
    "many fields": {f"field-{number}": number for number in range(5000)},
}


@pytest.mark.parametrize("case", sorted(ODD))
async def test_bad_input_is_answered(site: Site, case: str) -> None:
    """An answer is an admission, or a refusal that is about the object."""
    odd = ODD[case]
    typed: JsonObject = {"apiVersion": AWS, "kind": "CloudProfileConfig", "machineImages": odd}
    objects = [
        site.cloud_profile({"regions": odd}),
        site.obj("CloudProfile", {"spec": odd}),
        site.obj("CloudProfile", {"spec": {"providerConfig": odd, "machineImages": odd}}),
        site.obj("CloudProfile", {"spec": {"providerConfig": typed, "machineCapabilities": odd}}),
        site.obj("NamespacedCloudProfile", {"spec": {"parent": odd, "providerConfig": odd}}),
        site.obj("NamespacedCloudProfile", {"spec": {"parent": {"kind": "CloudProfile"}}}),
        site.bucket(providerConfig=odd),
        site.bucket(credentialsRef=odd),
        site.bucket(providerConfig={**BUCKET, "immutability": odd}),
        site.seed(providerConfig=odd, credentialsRef=odd),
        site.obj("Seed", {"spec": {"backup": odd}}),
        site.binding(odd),
        site.binding({**site.reference(), "name": odd}),
        site.obj("SecretBinding", {"secretRef": odd, "provider": odd}),
        site.identity(odd),
        site.obj("WorkloadIdentity", {"spec": {"targetSystem": odd}}, api=SECURITY),
        site.obj("Shoot", {"spec": {"provider": {"type": "aws", "workers": odd}}}),
    ]
    for obj in objects:
        nameless = {**obj, "metadata": {**obj["metadata"], "name": "", "generateName": "x-"}}
        for each in (obj, nameless):
            code, text = await answer(site, each)
            assert code in (201, 400, 403, 413, 422), (each["kind"], text[:500])
            assert "panic" not in text
            assert "failed calling webhook" not in text, text[:500]


async def answer(site: Site, obj: JsonObject) -> tuple[int, str]:
    """Return the code and the text of the API server's answer to the creation of an object."""
    try:
        await site.client.create(obj, dry_run=True)
    except ApiError as error:
        return error.code, str(error)
    return 201, ""


def unlabelled(site: Site, name: str) -> JsonObject:
    return {"name": name, "namespace": site.namespace}
