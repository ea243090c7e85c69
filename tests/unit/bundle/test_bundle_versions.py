import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.bundle.versions import Version, VersionError, VersionRange

numbers = st.integers(min_value=0, max_value=4)
releases = st.tuples(numbers, numbers, numbers).map(lambda parts: Version(*parts))
prereleases = st.sampled_from(["0", "alpha", "alpha.1", "beta", "beta.2", "beta.11", "rc.1"])


def text_of(version: Version) -> str:
    return f"{version.major}.{version.minor}.{version.patch}"


def fits(constraint: str, version: str) -> bool:
    return Version.parse(version) in VersionRange.parse(constraint)


def test_versions_are_sorted_as_semantic_versions() -> None:
    ascending = (
        "1.0.0-0",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-beta",
        "1.0.0-beta.2",
        "1.0.0-beta.11",
        "1.0.0-rc.1",
        "1.0.0",
        "1.0.1",
        "1.2",
        "1.10",
        "2",
    )
    parsed = list(map(Version.parse, ascending))
    assert parsed == sorted(parsed)
    assert len(set(parsed)) == len(ascending)


@pytest.mark.parametrize(
    ("text", "same"), [("v1.30.2", "1.30.2"), ("1.30", "1.30.0"), ("1.30.2+k3s1", "1.30.2")]
)
def test_a_version_can_be_written_in_several_ways(text: str, same: str) -> None:
    assert Version.parse(text) == Version.parse(same)


@pytest.mark.parametrize(
    "text", ["", "v", "1.x", "1.2.3.4", "one", "1..2", "1.2.3-", ">= 1.2", "\u0661.\u0662"]
)
def test_an_invalid_version_is_refused(text: str) -> None:
    with pytest.raises(VersionError, match="is not a version"):
        Version.parse(text)


@pytest.mark.parametrize(
    ("constraint", "inside", "outside"),
    [
        ("1.30.2", "1.30.2", "1.30.3"),
        ("= 1.30.2", "1.30.2", "1.30.1"),
        ("== 1.30", "1.30.9", "1.31.0"),
        ("!= 1.30.2", "1.30.3", "1.30.2"),
        ("!= 1.30", "1.31.0", "1.30.3"),
        (">= 1.30", "1.30.0", "1.29.9"),
        ("=> 1.30", "1.30.0", "1.29.9"),
        ("> 1.30", "1.31.0", "1.30.9"),
        ("> 1.30.2", "1.30.3", "1.30.2"),
        ("< 1.31", "1.30.9", "1.31.0"),
        ("<= 1.30", "1.30.9", "1.31.0"),
        ("<= 1.30.2", "1.30.2", "1.30.3"),
        (">= 1.30, < 1.32", "1.31.5", "1.32.0"),
        (">= 1.30 < 1.32", "1.30.0", "1.29.0"),
        (">=1.30,<1.32", "1.31.5", "1.32.0"),
        ("< 1.28 || >= 1.30", "1.27.1", "1.29.0"),
        ("< 1.28 || >= 1.30", "1.30.0", "1.28.0"),
        ("1.30.x", "1.30.7", "1.31.0"),
        ("1.30.*", "1.30.7", "1.29.0"),
        ("1.x", "1.99.0", "2.0.0"),
        (">= 1.2.x", "1.2.0", "1.1.9"),
        ("<= 2.x", "2.9.9", "3.0.0"),
        ("~ 1.30", "1.30.5", "1.31.0"),
        ("~1.30.2", "1.30.3", "1.30.1"),
        ("~1.2.x", "1.2.0", "1.3.0"),
        ("~1", "1.9.9", "2.0.0"),
        ("~> 1.2.3", "1.2.4", "1.3.0"),
        ("^1.2.3", "1.9.0", "2.0.0"),
        ("^1.2.x", "1.2.0", "1.1.9"),
        ("^0.2.3", "0.2.9", "0.3.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0.0", "0.0.9", "0.1.0"),
        ("^0", "0.9.0", "1.0.0"),
        ("1.2 - 1.4.5", "1.4.5", "1.4.6"),
        ("2.3.4 - 4.5", "4.5.9", "4.6.0"),
    ],
)
def test_a_range_contains_the_versions_that_it_describes(
    constraint: str, inside: str, outside: str
) -> None:
    assert fits(constraint, inside)
    assert not fits(constraint, outside)


@pytest.mark.parametrize("constraint", ["*", "x", ">= *", "<= x", "= *", "^*", "~x"])
def test_a_lone_wildcard_contains_all_versions(constraint: str) -> None:
    assert fits(constraint, "0.0.0")
    assert fits(constraint, "99.0.0")


@pytest.mark.parametrize("constraint", ["< *", "> x", "!= *"])
def test_a_range_of_all_versions_contains_every_version(constraint: str) -> None:
    assert not fits(constraint, "1.30.0")


@pytest.mark.parametrize("version", ["1.30.2-gke.5", "1.30.2-eks-1552ad0", "v1.30.2-rc.1+build"])
def test_vendor_suffixes_are_ignored(version: str) -> None:
    assert fits(">= 1.30.2", version)
    assert fits("= 1.30.2", version)
    assert not fits("< 1.30.2", version)


def test_a_range_that_names_a_prerelease_distinguishes_prereleases() -> None:
    constraint = ">= 1.30.0-beta.2, < 1.31"
    assert not fits(constraint, "1.30.0-beta.1")
    assert fits(constraint, "1.30.0-beta.11")
    assert fits(constraint, "1.30.0")
    assert fits("1.30.0-rc.1", "1.30.0-rc.1")
    assert not fits("1.30.0-rc.1", "1.30.0-rc.1.1")
    assert not fits("1.30.0-rc.1", "1.30.0")


@pytest.mark.parametrize(
    "constraint",
    [
        "",
        "  ",
        "1.30,",
        ", 1.30",
        ">= ",
        "latest",
        "1.2.3.4",
        ">= 1.30 or",
        "1.30 ||",
        ">< 1",
        "x.y",
    ],
)
def test_an_invalid_range_is_refused(constraint: str) -> None:
    with pytest.raises(VersionError, match="is not a version range"):
        VersionRange.parse(constraint)


def test_equivalent_ranges_are_equal() -> None:
    assert VersionRange.parse(">=1.30,<1.32") == VersionRange.parse(">= 1.30 < 1.32")
    assert VersionRange.parse("1.30.x") == VersionRange.parse("~1.30")
    assert VersionRange.parse(">= 1.30") != VersionRange.parse("> 1.30")


@given(releases, releases)
def test_comparisons_agree_with_the_order(a: Version, b: Version) -> None:
    text = text_of(b)
    assert (a in VersionRange.parse(f"< {text}")) is (a < b)
    assert (a in VersionRange.parse(f"<= {text}")) is (a <= b)
    assert (a in VersionRange.parse(f"> {text}")) is (a > b)
    assert (a in VersionRange.parse(f">= {text}")) is (a >= b)
    assert (a in VersionRange.parse(f"= {text}")) is (a == b)
    assert (a in VersionRange.parse(f"!= {text}")) is (a != b)


@given(releases, releases, prereleases, prereleases)
def test_comparisons_with_prereleases_agree_with_the_order(
    a: Version, b: Version, one: str, other: str
) -> None:
    first, second = f"{text_of(a)}-{one}", f"{text_of(b)}-{other}"
    left, right = Version.parse(first), Version.parse(second)
    assert fits(f"< {second}", first) is (left < right)
    assert fits(f">= {second}", first) is (left >= right)
    assert fits(f"= {second}", first) is (left == right)


@given(releases, numbers, numbers)
def test_tilde_and_wildcard_keep_the_minor_version(a: Version, major: int, minor: int) -> None:
    expected = (a.major, a.minor) == (major, minor)
    for constraint in (f"~{major}.{minor}", f"{major}.{minor}.x", f"{major}.{minor}"):
        assert (a in VersionRange.parse(constraint)) is expected


@given(releases, releases)
def test_caret_keeps_the_first_number_that_is_not_zero(a: Version, b: Version) -> None:
    if a in VersionRange.parse(f"^{text_of(b)}"):
        assert a >= b
        assert a.major == b.major
        if b.major == 0:
            assert a.minor == b.minor
        if b.major == b.minor == 0:
            assert a == b
    assert b in VersionRange.parse(f"^{text_of(b)}")
