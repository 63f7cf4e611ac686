"""What becomes of a task run report (DESIGN 3; `kestra.md` 1 to 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.stack_in_memory import StackInMemory


def test_a_run_leaves_one_event_its_assets_and_one_usage_for_each(stack: StackInMemory) -> None:
    answer = stack.record(
        assets={
            "inputs": [{"id": "shop.public.orders"}],
            "outputs": [{"id": "warehouse.raw.orders", "type": "io.kestra.plugin.ee.assets.Table"}],
        }
    )
    (event,) = stack.events()
    assert answer == {
        "state": "SUCCESS",
        "lineageEvents": [event.id],
        "assets": {"created": ["warehouse.raw.orders", "shop.public.orders"], "updated": [], "failed": []},
    }
    assert stack.uses() == [("shop.public.orders", "R"), ("warehouse.raw.orders", "W")]
