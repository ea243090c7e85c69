"""Values for configs of AWS: ranges, ids, and whole objects that are valid."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pergola.api.objects import JsonObject

API_VERSION: Final = "aws.provider.extensions.gardener.cloud/v1alpha1"
ZONES: Final = ("eu-west-1a", "eu-west-1b", "eu-west-1c", "eu-west-1d")
ZONE_NAMES: Final = st.sampled_from([*ZONES, *ZONES, "eu-central-1a", "", "EU", "a_b", "z" * 256])

_FORMS: Final = (
    "",
    "text",
    "10.250.0.0",
    "10.250.0.0/33",
    "10.250.0.0/-1",
    "10.250.0.0/+16",
    "10.250.0.0/016",
    "10.250.0.0/",
    "/16",
    " 10.250.0.0/16",
    "10.250.0.0/16 ",
    "10.250.0.1/16",
    "010.250.0.0/16",
    "10.250/16",
    "10.250.0.0/255.255.0.0",
    "10.0.0.0/8",
    "0.0.0.0/0",
    "1.2.3.4/32",
    "100.96.0.0/11",
    "100.64.0.0/16",
    "::/0",
    "::1/128",
    "2001:db8::/56",
    "2001:DB8::/56",
    "2001:0db8::/56",
    "2001:db8::1/56",
    "2001:db8:0:0:0:0:0:0/56",
    "2001:db8::/64",
    "2001:db8::/129",
    "fe80::1%eth0/64",
    "::ffff:10.250.0.0/112",
    "::ffff:10.250.0.0/16",
    "::10.250.0.0/112",
)
_INSIDE: Final = st.builds(
    "10.{}.{}.0/{}".format,
    st.sampled_from([250, 250, 250, 251]),
    st.sampled_from([0, 32, 48, 64, 96, 112, 128, 160, 176, 192, 224, 240]),
    st.sampled_from([16, 18, 19, 20, 20, 21, 24, 28]),
)
RANGES: Final = st.one_of(_INSIDE, _INSIDE, st.sampled_from(_FORMS))
"""Ranges as text, many inside that of the VPC."""

CANONICAL: Final = st.sampled_from(
    ["10.250.0.0/16", "10.250.0.0/17", "10.250.192.0/20", "10.0.0.0/8", "0.0.0.0/0", "1.2.3.4/32"]
) | st.sampled_from(["100.96.0.0/11", "100.64.0.0/13", "2001:db8::/56", "2001:db8:1::/48", "::/0"])
"""Ranges in the form that the API server demands of Shoots."""


def ids(prefix: str) -> SearchStrategy[str]:
    """Return ids of AWS, odd ones among them."""
    return (
        st.sampled_from(
            [
                f"{prefix}-0a1b2c3d",
                f"{prefix}-1",
                f"{prefix}-2",
                f"{prefix}-3",
                prefix,
                f"{prefix}-",
            ]
        )
        | st.sampled_from(
            ["", f"{prefix}-A", f"{prefix}-ä", f"{prefix}-1\n", f" {prefix}-1", f"x{prefix}-1"]
        )
        | st.sampled_from([f"{prefix}-{'a' * 251}", f"{prefix}-{'a' * 260}", f"{prefix}-1-2"])
    )


def config(kind: str, fields: JsonObject) -> JsonObject:
    """Return a config of a kind."""
    return {"apiVersion": API_VERSION, "kind": kind, **fields}


TYPES: Final[dict[str, SearchStrategy[Any]]] = {
    "apiVersion": st.sampled_from([API_VERSION, "v1", ""])
    | st.sampled_from(["aws.provider.extensions.gardener.cloud/v1", "core.gardener.cloud/v1beta1"]),
    "kind": st.sampled_from(
        ["InfrastructureConfig", "ControlPlaneConfig", "WorkerConfig", "BackupBucketConfig"]
    )
    | st.sampled_from(["CloudProfileConfig", "InfrastructureStatus", "infrastructureConfig", ""]),
    "unknown": st.sampled_from([None, {}, 1]),
    "metadata": st.just({"name": "a"}),
    "status": st.just({}),
}
"""Odd values of the fields that every config has.

The version `__internal` is left out: the original's decoder takes it, but no API has it.
"""
