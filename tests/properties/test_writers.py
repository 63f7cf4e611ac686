"""Several writers at once on one asset: whatever the order of their calls, nobody's change is lost."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.turns import Turns
from waybill.clock import utc_now
from waybill.model.asset import TABLE, Asset, DeclaredAsset, merged
from waybill.store.batches import get_items
from waybill.store.catalog import AssetStore, Change, Writer
from waybill.store.index import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.stack_in_memory import StackInMemory

DELETE = "delete"
STEPS = st.sampled_from(["a", "b", None, DELETE])
"""A writer gives its own key one of two values, or removes it; or somebody deletes the asset."""
WRITERS = st.lists(st.lists(STEPS, min_size=1, max_size=3), min_size=2, max_size=3)


def change_of(asset_id: str, writer: int, step: str | None) -> Change:
    """The change that a step of a writer makes: its own key, and its name among the tags."""

    def change(asset: Asset | None) -> Asset | None:
        if step == DELETE:
            return asset and asset.model_copy(update={"deleted": True})
        metadata: dict[str, Any] = {f"key{writer}": step, "tags": [f"writer{writer}"]}
        declared = DeclaredAsset.model_validate({"id": asset_id, "type": TABLE, "metadata": metadata})
        return merged(asset, declared, utc_now())

    return change


def writer_of(table: str, asset_id: str, number: int, steps: list[str | None]) -> Callable[[Any], None]:
    """Every other writer puts the rows of a new asset in a batch, as the recorder does with many."""

    def write(client: Any) -> None:
        store = AssetStore(client, table)
        for step in steps:
            change, stored = change_of(asset_id, number, step), store.load(asset_id)
            new = change(None) if stored is None and number % 2 else None
            if new is not None:
                store.index.add_new([new])
            store.write(asset_id, stored, change, Writer(f"USER#{number}"), indexed=new is not None)

    return write


@settings(max_examples=60, deadline=None)
@given(writers=WRITERS, order=st.lists(st.integers(0, 2), max_size=60))
def test_no_change_is_lost_and_every_value_is_found(
    module_stack: StackInMemory, writers: list[list[str | None]], order: list[int]
) -> None:
    asset_id, table = f"asset-{uuid.uuid4().hex}", module_stack.settings.catalog_table
    functions = [writer_of(table, asset_id, number, steps) for number, steps in enumerate(writers)]

    Turns().run(module_stack.dynamodb, functions, order)

    values = {number: [step for step in steps if step != DELETE] for number, steps in enumerate(writers)}
    last = {f"key{number}": steps[-1] for number, steps in values.items() if steps and steps[-1] is not None}
    stored = module_stack.assets.load_many([asset_id])
    if not any(values.values()):
        assert stored == {}
        return
    asset = stored[asset_id].asset
    assert asset is not None
    assert {key: value for key, value in asset.metadata.items() if key != "tags"} == last
    assert set(asset.metadata["tags"]) == {f"writer{number}" for number, steps in values.items() if steps}
    keys = [{"pk": {"S": term}, "sk": {"S": asset_id}} for term in terms_of(asset)]
    assert len(get_items(module_stack.dynamodb, table, keys)) == len(keys)


@settings(max_examples=25, deadline=None)
@given(order=st.lists(st.integers(0, 3), max_size=40))
def test_of_several_that_create_an_asset_at_once_one_created_it(module_stack: StackInMemory, order: list[int]) -> None:
    asset_id, created = f"asset-{uuid.uuid4().hex}", []

    def create(client: Any, number: int) -> None:
        store = AssetStore(client, module_stack.settings.catalog_table)
        written = store.write(asset_id, None, change_of(asset_id, number, "a"), Writer(f"USER#{number}"))
        created.append(written is not None and written.created)

    functions = [lambda client, number=number: create(client, number) for number in range(4)]
    Turns().run(module_stack.dynamodb, functions, order)

    assert sorted(created) == [False, False, False, True]
    assert len(module_stack.asset(asset_id).metadata) == 5
