"""A user's value is never overwritten: spec 50 §5, step 5."""

from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.externally_managed.ownership import MANAGER, decide_fields, leaves, owned_paths
from pergola.kube.patches import apply_merge_patch

WANTED: JsonObject = {
    "controlPlaneEndpoint": {"host": "api.example", "port": 443},
    "network": {"vpc": {"id": "vpc-1"}, "subnets": [{"id": "subnet-1"}]},
}
OWNED = frozenset(path for path, _ in leaves(WANTED))


def test_what_is_empty_is_filled() -> None:
    live = {"controlPlaneEndpoint": {"host": "", "port": 0}, "region": "eu-1"}
    decision = decide_fields(WANTED, live, frozenset())
    assert decision.fields == WANTED
    assert decision.differs
    assert decision.conflicts == ()


def test_what_is_ours_and_right_needs_no_write() -> None:
    assert not decide_fields(WANTED, {**WANTED, "region": "eu-1"}, OWNED).differs


def test_what_is_ours_follows_the_network() -> None:
    live = apply_merge_patch(WANTED, {"network": {"vpc": {"id": "vpc-old"}}})
    decision = decide_fields(WANTED, live, OWNED)
    assert decision.differs
    assert decision.fields["network"]["vpc"]["id"] == "vpc-1"


def test_a_users_other_value_stays_and_both_are_named() -> None:
    live = apply_merge_patch(WANTED, {"controlPlaneEndpoint": {"host": "mine.example"}})
    decision = decide_fields(WANTED, live, frozenset())
    assert "host" not in decision.fields.get("controlPlaneEndpoint", {})
    assert decision.conflicts == (
        'spec.controlPlaneEndpoint.host is "mine.example", but the network has "api.example"',
    )


def test_a_users_equal_value_stays_the_users() -> None:
    decision = decide_fields(WANTED, WANTED, frozenset())
    assert decision.fields == {}
    assert not decision.differs
    assert not decision.conflicts


def test_what_the_network_has_no_more_is_given_up() -> None:
    decision = decide_fields({}, WANTED, OWNED)
    assert decision.fields == {}
    assert decision.differs


def test_the_managed_fields_say_what_is_ours() -> None:
    ours = {
        "manager": MANAGER,
        "fieldsV1": {
            "f:spec": {
                "f:controlPlaneEndpoint": {"f:host": {}, "f:port": {}},
                "f:network": {
                    "f:subnets": {'k:{"id":"subnet-1"}': {".": {}, "f:id": {}}},
                    "f:tags": {},
                },
            }
        },
    }
    status = {"manager": MANAGER, "subresource": "status", "fieldsV1": {"f:spec": {"f:x": {}}}}
    other = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:region": {}}}}
    assert owned_paths({"metadata": {"managedFields": [other, ours, status]}}, "spec") == {
        ("controlPlaneEndpoint", "host"),
        ("controlPlaneEndpoint", "port"),
        ("network", "subnets"),
        ("network", "tags"),
    }


values = st.dictionaries(
    st.sampled_from("abc"),
    st.integers(1, 3) | st.dictionaries(st.sampled_from("xy"), st.integers(1, 3), min_size=1),
)


@given(values, values)
def test_no_value_of_a_user_is_ever_applied_over(wanted: JsonObject, live: JsonObject) -> None:
    decision = decide_fields(wanted, live, frozenset())
    mine = dict(leaves(live))
    assert not set(dict(leaves(decision.fields))) & set(mine)
    assert bool(decision.fields) == decision.differs


@given(values, values)
def test_what_was_applied_is_settled(wanted: JsonObject, live: JsonObject) -> None:
    first = decide_fields(wanted, live, frozenset())
    after = apply_merge_patch(live, first.fields)
    owned = frozenset(path for path, _ in leaves(first.fields))
    second = decide_fields(wanted, after, owned)
    assert not second.differs
    assert second.conflicts == first.conflicts
