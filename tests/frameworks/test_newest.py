"""Nothing is stated of the newest releases that is not known of them."""

from __future__ import annotations

from benchmarks.newest import NEWEST, faults
from tests.every_case import every_case
from trainmedic.kb.pages.defect import defect_packages


@every_case("package", sorted(NEWEST))
def test_a_set_up_with_the_newest_release(package: str) -> None:
    assert list(faults(package)) == []


def test_every_package_with_known_defects_is_among_them() -> None:
    assert NEWEST.keys() == {name for name, entry in defect_packages().items() if "collected" in entry}
