"""What several indexes have in common, or any of them has, is what sets say it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from waybill.store.sorted_ids import AllOf, AnyOf, FixedIds, walk

IDS = st.sets(st.text("ab.", min_size=1, max_size=4), max_size=12)
SEVERAL = st.lists(IDS, min_size=1, max_size=4)


@given(SEVERAL, st.text("ab.", max_size=4))
def test_all_of(several: list[set[str]], after: str) -> None:
    found = list(walk(AllOf([FixedIds(ids) for ids in several]), after))

    assert found == sorted(asset_id for asset_id in several[0].intersection(*several) if not after or asset_id > after)


@given(SEVERAL, st.text("ab.", max_size=4))
def test_any_of(several: list[set[str]], after: str) -> None:
    found = list(walk(AnyOf([FixedIds(ids) for ids in several]), after))

    assert found == sorted(asset_id for asset_id in set.union(*several) if not after or asset_id > after)


@given(SEVERAL, SEVERAL)
def test_one_within_the_other(several: list[set[str]], others: list[set[str]]) -> None:
    inner = AnyOf([FixedIds(ids) for ids in several])

    found = list(walk(AllOf([inner, *(FixedIds(ids) for ids in others)])))

    assert found == sorted(set.union(*several) & others[0].intersection(*others))
