"""DNSRecords: hosts that may be alias targets of Route 53, and records that exist already."""

from itertools import product
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pergola.api.objects import JsonObject

_REGIONS: Final = """
    af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 ap-south-1
    ap-south-2 ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 ap-southeast-5
    ap-southeast-6 ap-southeast-7 ca-central-1 ca-west-1 cn-north-1 cn-northwest-1 eu-central-1
    eu-central-2 eu-north-1 eu-south-1 eu-south-2 eu-west-1 eu-west-2 eu-west-3 il-central-1
    me-central-1 me-south-1 mx-central-1 sa-east-1 us-east-1 us-east-2 us-gov-east-1 us-gov-west-1
    us-west-1 us-west-2 xx-west-1
"""
_SERVICES: Final = (
    "web-1.{}.elb.amazonaws.com",
    "web-1.elb.{}.amazonaws.com",
    "vpce-1.vpce-svc-2.{}.vpce.amazonaws.com",
    "d-1.execute-api.{}.amazonaws.com",
)
_OTHERS: Final = (
    "dualstack.web-1.eu-west-1.elb.amazonaws.com",
    "a1.awsglobalaccelerator.com",
    "d1.cloudfront.net",
    "d1.notcloudfront.net",
    "cloudfront.net",
    "elb.eu-west-1.amazonaws.com",
    "web-1.elb.eu-west-1.amazonaws.com.example.org",
    "ec2-192-0-2-1.eu-west-1.compute.amazonaws.com",
    "lb.example.com",
    "localhost",
)
HOSTS: Final = (
    *(
        service.format(region) + end
        for service, region in product(_SERVICES, _REGIONS.split())
        for end in ("", *([".cn"] if region.startswith(("cn-", "eu-west")) else []))
    ),
    *_OTHERS,
)
"""Hosts of every service in every region of AWS, and others."""
STACKS: Final = ("", "ipv4", "ipv6", "dual-stack", "both")
_ZONES: Final = ("Z2IFOLAFXWLO4F", "Z0OTHER")
_VALUES: Final = {
    "A": ["192.0.2.1", "192.0.2.2", "192.0.2.3"],
    "AAAA": ["2001:db8::1", "2001:db8::2"],
    "TXT": ["hello", "two words", '"quoted"'],
}
_TEXT: Final[JsonObject] = {"type": "TXT", "ttl": 60, "values": ['"mine"'], "alias": None}


def questions() -> SearchStrategy[JsonObject]:
    """Return DNSRecords of each type, with the records of their names."""
    aliases = st.sampled_from(HOSTS).flatmap(_to_host)
    return st.one_of(aliases, aliases, *(_to_values(each) for each in _VALUES))


def _to_host(host: str) -> SearchStrategy[JsonObject]:
    alias = st.builds(
        lambda of_type, zone, healthy: {
            "type": of_type,
            "ttl": 0,
            "values": [],
            "alias": {"zone": zone, "name": host, "healthy": healthy},
        },
        st.sampled_from(["A", "AAAA"]),
        st.sampled_from(_ZONES),
        st.booleans(),
    )
    cname = _TTLS.map(lambda ttl: {"type": "CNAME", "ttl": ttl, "values": [host], "alias": None})
    aliases = st.lists(alias, max_size=2, unique_by=lambda each: str(each["type"]))
    return _question("CNAME", st.just([host]), _with_text(aliases) | cname.map(lambda one: [one]))


def _to_values(of_type: str) -> SearchStrategy[JsonObject]:
    values = st.lists(st.sampled_from(_VALUES[of_type]), min_size=1, unique=True)

    def live(values: list[str]) -> SearchStrategy[list[JsonObject]]:
        stored = [each if of_type != "TXT" or '"' in each else f'"{each}"' for each in values]
        same = _TTLS.map(lambda ttl: {"type": of_type, "ttl": ttl, "values": stored, "alias": None})
        found = st.lists(same, max_size=1)
        return found if of_type == "TXT" else _with_text(found)

    return values.flatmap(lambda some: _question(of_type, st.just(some), live(some)))


def _with_text(records: SearchStrategy[list[JsonObject]]) -> SearchStrategy[list[JsonObject]]:
    """Return records in the order of Route 53, often with one of another owner."""
    lists = st.builds(lambda some, text: [*some, *text], records, st.sampled_from([[], [_TEXT]]))
    return lists.map(lambda some: sorted(some, key=lambda each: str(each["type"])))


def _question(
    of_type: str, values: SearchStrategy[list[str]], live: SearchStrategy[list[JsonObject]]
) -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(
        {
            "name": st.sampled_from(["api.example.org", "*.example.org"]),
            "recordType": st.just(of_type),
            "values": values,
            "ttl": _TTLS | st.none(),
            "stack": st.sampled_from(STACKS),
            "live": live,
        }
    )


_TTLS: Final = st.sampled_from([60, 120, 300])
