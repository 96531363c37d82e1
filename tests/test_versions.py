"""Order of releases and membership in ranges."""

from __future__ import annotations

import pytest

from tests.every_case import every_case
from trainmedic.kb.versions import (
    Interval,
    bare,
    holds,
    interval_holds,
    interval_of,
    parse_range,
    parse_version,
    permits,
    version_key,
)


def test_releases_sort_as_the_package_index_sorts_them() -> None:
    order = ["0.8.9", "0.8.9.post1", "0.8.10rc1", "0.8.10", "0.10.0.dev0", "0.10.0", "1.0"]
    assert sorted(reversed(order), key=version_key) == order
    assert version_key("v0.3") == version_key("0.3.0")
    assert version_key("2.5.1+cu121") == version_key("2.5.1")
    assert version_key("no release") < version_key("0.0.1")


@every_case(
    ("requirement", "release", "allowed"),
    [
        (">=4.41.2,<=4.46.1", "4.46.2", False), (">=4.41.2,<=4.46.1,!=4.45.*", "4.45.0", False),
        ("==0.14.*", "0.14.5", True), ("==2.5.1", "2.5.1+cu121", True), ("", "1.0", True), ("<1.0", "1.0", False),
        ("<1.0", "1.0rc1", True), ("anything readable or not", "1.0", True),
        ("<1.0,@ git+https://example.org", "1.0", False),
    ],
)  # fmt: skip
def test_a_requirement_allows_a_release_unless_it_excludes_it(requirement: str, release: str, allowed: bool) -> None:
    assert permits(requirement, release) is allowed


def test_a_tag_loses_its_v_and_its_local_part() -> None:
    assert (bare("v0.8.11"), bare("2.5.1+cu121"), bare("verl")) == ("0.8.11", "2.5.1", "verl")


def test_what_is_not_a_version_has_none() -> None:
    assert parse_version("main") is None
    assert parse_version("") is None
    assert parse_version(None) is None


@every_case(
    ("version_", "spec", "expected"),
    [
        ("2.5.1+cu124", "==2.5.1", True), ("2.5.1+cu124", "<=2.5.1", True), ("2.5.1+cu124", ">2.5.1", False),
        ("2.5.1+cu124", "==2.5.1+cu121", False), ("0.5.2.post1", ">0.5.2", True), ("0.5.2.post1", "<=0.5.2", False),
        ("0.5.2", "<0.5.2.post1", True), ("2.6.1", ">=2.6.0,<2.6.2", True), ("2.6.2", ">=2.6.0,<2.6.2", False),
        ("0.10.0", ">0.9.9", True), ("4.46.3", "==4.46.*", True), ("4.47.0", "==4.46.*", False),
        ("4.46.3", "!=4.46.*", False), ("4.46.3", "!=4.46.2", True), ("4.46.3", "~=4.46.1", True),
        ("4.47.0", "~=4.46.1", False), ("4.46.0.dev0", ">=4.45", True), ("4.46.0.dev0", ">=4.46", None),
        ("4.46.0.dev0", "<4.46", None), ("4.46.0rc1", "==4.46.0rc1", True), ("4.46.0rc1", "<=4.45", False),
        ("0.9.0.dev0", ">=0.8,<0.9", None), ("0.9.0.dev0", "<0.9.1", True), ("1.2.post1", ">1.2", True),
        ("1.2.post1", "==1.2", False), ("2.5.1", "==2.5.1+cu121", False), ("1.0", "===1.0", True),
    ],
)  # fmt: skip
def test_an_exact_version_lies_in_a_range_or_not(version_: str, spec: str, expected: bool | None) -> None:
    found = parse_version(version_)
    assert found is not None
    assert holds(found, parse_range(spec)) is expected


@every_case(
    ("low", "high", "spec", "expected"),
    [
        ("0.3.4", None, ">=0.3.4", True), ("0.3.4", None, ">0.3.4", None), ("0.3.4", None, "<0.3.4", False),
        ("0.3.4", None, "<=0.3.4", None), (None, "0.3.3", "<0.3.4", True), (None, "0.3.3", "<0.3.3", None),
        (None, "0.3.3", ">0.3.3", False), ("1.0", "2.0", ">=1.5", None), ("1.0", "2.0", ">=1.0,<=2.0", True),
        ("1.0", "1.0", "==1.0", True), ("1.0", "2.0", "==3.0", False), ("1.0", "2.0", "!=3.0", True),
        ("1.0", "2.0", "!=1.5", None), (None, None, ">=1", None),
    ],
)  # fmt: skip
def test_a_version_known_between_bounds_gives_three_answers(
    low: str | None, high: str | None, spec: str, expected: bool | None
) -> None:
    assert interval_holds(Interval(parse_version(low), parse_version(high)), parse_range(spec)) is expected


def test_a_requirement_is_an_interval_with_open_and_closed_ends() -> None:
    assert interval_of("==2.6.1") == Interval(parse_version("2.6.1"), parse_version("2.6.1"))
    assert interval_of(">4.41,<4.47,>=4.0,<=5") == Interval(parse_version("4.41"), parse_version("4.47"), True, True)
    assert interval_of("!=4.46.0") is None
    assert interval_of("@ git+https://example.org") is None
    open_ends = interval_of(">1,<2")
    assert open_ends is not None
    assert interval_holds(open_ends, parse_range(">1")) is True
    assert interval_holds(open_ends, parse_range("<2")) is True
    assert interval_holds(open_ends, parse_range(">=2")) is False


@every_case("text", ["", "new", ">=1.*", ">=x", "~=4", ">=1 2", ">=1-x-y"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"range|version|two numbers|only goes"):
        parse_range(text)
