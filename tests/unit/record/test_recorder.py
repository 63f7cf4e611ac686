"""What becomes of a task run report (DESIGN 3; `kestra.md` 1 to 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from waybill.errors import InvalidReport
from waybill.model.asset import EXTERNAL, TABLE
from waybill.model.lock import Lock
from waybill.model.namespace import NamespaceSettings

if TYPE_CHECKING:
    from tests.support.stack_in_memory import StackInMemory

RAW = {"id": "warehouse.raw.orders", "type": TABLE}
MART = {"id": "warehouse.mart.orders", "type": TABLE}
SHOP = {"id": "shop.public.orders"}


def close(stack: StackInMemory, namespace: str, *allowed: str) -> None:
    stack.namespaces.put(namespace, NamespaceSettings(allowed_namespaces=allowed))


def lock(stack: StackInMemory, asset_id: str, **changes: Any) -> None:
    held = {
        "locked_until": "2999-01-01T00:00:00Z",
        "acquired_at": "2026-12-01T09:00:00Z",
        "username": "arn:aws:iam::000000000000:user/ops",
    }
    stack.locks.acquire(asset_id, Lock.model_validate(held | changes))


LOCKED = "warehouse.raw.orders is locked by arn:aws:iam::000000000000:user/ops until 2999-01-01T00:00:00.000Z"


def test_a_run_leaves_one_event_its_assets_and_one_usage_for_each(stack: StackInMemory) -> None:
    """Rows 11, 12 and 31."""
    answer = stack.record(assets={"inputs": [SHOP], "outputs": [RAW]})

    (event,) = stack.events()
    assert answer == {
        "state": "SUCCESS",
        "lineageEvents": [event.id],
        "assets": {"created": ["warehouse.raw.orders", "shop.public.orders"], "updated": [], "failed": []},
    }
    assert stack.uses() == [("shop.public.orders", "R"), ("warehouse.raw.orders", "W")]


def test_a_lineage_event_says_who_ran_when_and_how_it_ended(stack: StackInMemory) -> None:
    """Row 30."""
    error = {"message": "late data"}
    answer = stack.record(
        state="WARNING", flowRevision=4, labels={"team": "sales"}, error=error, assets={"inputs": [SHOP]}
    )

    (event,) = stack.events()
    assert event.as_json() == {
        "id": answer["lineageEvents"][0],
        "namespace": "company.sales",
        "flowId": "load",
        "flowRevision": 4,
        "executionId": "execution-1",
        "taskId": "customers",
        "taskRunId": "run-1",
        "state": "WARNING",
        "startDate": "2026-12-01T09:00:00.000Z",
        "endDate": "2026-12-01T09:00:05.000Z",
        "error": error,
        "labels": {"team": "sales"},
        "inputs": [SHOP],
        "outputs": [],
        "created": event.created,
    }


def test_the_same_id_is_the_same_asset_whatever_flow_namespace_or_type_names_it(stack: StackInMemory) -> None:
    """Row 1."""
    stack.write("lake.orders", namespace="company.sales")
    answer = stack.record(
        flowId="other", assets={"outputs": [{"id": "lake.orders", "type": "AWS_BUCKET", "namespace": "company.lake"}]}
    )

    assert answer["assets"]["updated"] == ["lake.orders"]
    asset = stack.asset("lake.orders")
    assert (asset.type, asset.namespace) == ("AWS_BUCKET", "company.lake")


def test_an_unknown_input_becomes_an_external_placeholder_in_the_namespace_of_the_flow(stack: StackInMemory) -> None:
    """Rows 17 and 19."""
    stack.record(assets={"inputs": [SHOP]})

    asset = stack.asset("shop.public.orders")
    assert (asset.type, asset.namespace, asset.metadata) == (EXTERNAL, "company.sales", {})


def test_a_placeholder_has_the_type_and_namespace_of_the_input_that_names_them(stack: StackInMemory) -> None:
    """Row 18."""
    stack.record(assets={"inputs": [SHOP | {"type": TABLE, "namespace": "shop"}]})

    asset = stack.asset("shop.public.orders")
    assert (asset.type, asset.namespace) == (TABLE, "shop")


def test_reading_a_known_asset_does_not_change_it(stack: StackInMemory) -> None:
    """Row 17: but the usage is there."""
    stack.write("lake.orders", owner="sales")
    before = stack.asset("lake.orders")

    answer = stack.record(assets={"inputs": [{"id": "lake.orders", "type": "Other", "namespace": "other"}]})

    assert answer["assets"] == {"created": [], "updated": [], "failed": []}
    assert stack.asset("lake.orders") == before
    assert stack.uses() == [("lake.orders", "R"), ("lake.orders", "W")]


def test_an_asset_that_a_run_reads_and_writes_is_no_placeholder(stack: StackInMemory) -> None:
    answer = stack.record(assets={"inputs": [{"id": RAW["id"]}], "outputs": [RAW]})

    assert answer["assets"]["created"] == ["warehouse.raw.orders"]
    assert stack.asset("warehouse.raw.orders").type == TABLE
    assert stack.uses() == [("warehouse.raw.orders", "R"), ("warehouse.raw.orders", "W")]


def test_each_emit_is_a_bundle_of_its_own_and_its_edges_are_not_mixed(stack: StackInMemory) -> None:
    """Row 29."""
    emits = [
        {"inputs": [{"id": "a"}], "outputs": [{"id": "x", "type": TABLE}]},
        {"inputs": [{"id": "b"}], "outputs": [{"id": "y", "type": TABLE}]},
    ]
    stack.record(assets={"enableAuto": True, "inputs": [SHOP], "outputs": [RAW]}, emits=emits)

    sides = [([ref.id for ref in event.inputs], [ref.id for ref in event.outputs]) for event in stack.events()]
    assert sides == [(["shop.public.orders"], ["warehouse.raw.orders"]), (["a"], ["x"]), (["b"], ["y"])]


def test_without_enable_auto_emits_are_dropped_without_a_word(stack: StackInMemory) -> None:
    """Row 15."""
    answer = stack.record(assets={"outputs": [RAW]}, emits=[{"outputs": [MART]}, {"outputs": [{"id": ":"}]}])

    assert answer["state"] == "SUCCESS"
    assert answer["assets"] == {"created": ["warehouse.raw.orders"], "updated": [], "failed": []}


def test_declared_and_emitted_words_about_one_asset_combine_in_one_write(stack: StackInMemory) -> None:
    """The guide: "The emitted and declared assets combine"."""
    emits = [{"outputs": [RAW | {"system": "duckdb", "owner": "plugin"}]}]
    answer = stack.record(assets={"enableAuto": True, "outputs": [RAW | {"owner": "sales"}]}, emits=emits)

    assert answer["assets"]["created"] == ["warehouse.raw.orders"]
    assert stack.asset("warehouse.raw.orders").metadata == {"owner": "plugin", "system": "duckdb"}


def test_per_run_ids_make_an_asset_each(stack: StackInMemory) -> None:
    """Row 87."""
    for execution in ("e1", "e2"):
        stack.record(
            executionId=execution, assets={"outputs": [{"id": f"snapshot.vm-web.{execution}", "type": "Snapshot"}]}
        )

    assert sorted(stack.assets.get_many(["snapshot.vm-web.e1", "snapshot.vm-web.e2"])) == [
        "snapshot.vm-web.e1",
        "snapshot.vm-web.e2",
    ]


@pytest.mark.parametrize("state", ["FAILED", "KILLED", "CANCELLED"])
def test_a_run_that_did_not_succeed_writes_no_outputs_but_leaves_everything_else(
    stack: StackInMemory, state: str
) -> None:
    """Rows 25 and 26."""
    stack.write("warehouse.raw.orders")
    before = stack.asset("warehouse.raw.orders")

    answer = stack.record(state=state, assets={"inputs": [SHOP], "outputs": [RAW | {"owner": "x"}, MART]})

    event = stack.events()[-1]
    assert answer["state"] == state
    assert answer["assets"] == {"created": ["shop.public.orders"], "updated": [], "failed": []}
    assert stack.asset("warehouse.raw.orders") == before
    assert stack.assets.get_many(["warehouse.mart.orders"]) == {}
    assert (event.state, [ref.id for ref in event.outputs]) == (
        state,
        ["warehouse.raw.orders", "warehouse.mart.orders"],
    )
    assert ("warehouse.raw.orders", "W") in stack.uses()


@pytest.mark.parametrize("changes", [{"state": "SKIPPED"}, {"kind": "TEST"}])
def test_a_skipped_run_and_a_test_record_nothing_and_are_answered_so(
    stack: StackInMemory, changes: dict[str, str]
) -> None:
    """Row 27."""
    answer = stack.record(assets={"inputs": [SHOP], "outputs": [RAW]}, **changes)

    nothing: dict[str, list[str]] = {"created": [], "updated": [], "failed": []}
    assert answer == {"state": changes.get("state", "SUCCESS"), "lineageEvents": [], "assets": nothing}
    assert stack.items(stack.settings.lineage_table) == []
    assert stack.items(stack.settings.catalog_table) == []


def test_a_report_without_assets_is_answered_and_leaves_no_event(stack: StackInMemory) -> None:
    assert stack.record()["lineageEvents"] == []
    assert stack.events() == []


@pytest.mark.parametrize(
    ("reported", "behavior", "state"),
    [
        ("SUCCESS", "IGNORE", "SUCCESS"),
        ("SUCCESS", "WARN", "WARNING"),
        ("SUCCESS", None, "WARNING"),
        ("SUCCESS", "FAIL", "FAILED"),
        ("WARNING", "IGNORE", "WARNING"),
        ("WARNING", "WARN", "WARNING"),
        ("WARNING", "FAIL", "FAILED"),
        *((state, behavior, state) for state in ("FAILED", "KILLED", "CANCELLED") for behavior in ("WARN", "FAIL")),
    ],
)
def test_what_becomes_of_a_run_whose_asset_failed(
    stack: StackInMemory, reported: str, behavior: str | None, state: str
) -> None:
    """Row 32. The lineage event carries the state that was reported."""
    assets = {"enableAuto": True, "inputs": [SHOP]} | ({"assetFailureBehavior": behavior} if behavior else {})
    emits = [{"outputs": [{"id": ":no", "type": TABLE}]}]

    answer = stack.record(state=reported, assets=assets, emits=emits)

    assert (answer["state"], [failed["id"] for failed in answer["assets"]["failed"]]) == (state, ["emits[0]"])
    assert [event.state for event in stack.events()] == [reported]
    assert [message["detail"]["state"] for message in stack.announced()] == ([state] if state != reported else [])


def test_a_changed_state_is_announced_on_the_bus_with_its_reasons(stack: StackInMemory) -> None:
    """Row 32: callers by queue and bus have no other way to learn of it."""
    stack.write("warehouse.raw.orders")
    lock(stack, "warehouse.raw.orders")

    stack.record(assets={"outputs": [RAW], "assetFailureBehavior": "FAIL"})

    (message,) = stack.announced()
    assert (message["source"], message["detail-type"]) == ("waybill", "Task State Changed")
    assert message["detail"] == {
        "namespace": "company.sales",
        "flowId": "load",
        "executionId": "execution-1",
        "taskId": "customers",
        "taskRunId": "run-1",
        "reportedState": "SUCCESS",
        "state": "FAILED",
        "failed": [{"id": "warehouse.raw.orders", "reason": LOCKED}],
    }


def test_a_fault_in_the_declaration_ends_the_report_whatever_the_failure_behavior(stack: StackInMemory) -> None:
    """Row 34."""
    assets = {"assetFailureBehavior": "IGNORE", "inputs": [{"id": ""}], "outputs": [RAW, {"id": "a"}]}
    with pytest.raises(InvalidReport) as refused:
        stack.record(assets=assets)

    assert refused.value.faults == ("assets.inputs[0].id: must not be empty", "assets.outputs[1].type: is required")
    assert stack.items(stack.settings.lineage_table) == []
    assert stack.items(stack.settings.catalog_table) == []


def test_one_output_that_cannot_be_written_does_not_stop_the_others(stack: StackInMemory) -> None:
    """Rows 35 and 73."""
    stack.write("warehouse.raw.orders", owner="sales")
    lock(stack, "warehouse.raw.orders")
    before = stack.asset("warehouse.raw.orders")

    answer = stack.record(assets={"outputs": [RAW | {"owner": "x"}, MART]})

    assert answer["assets"] == {
        "created": ["warehouse.mart.orders"],
        "updated": [],
        "failed": [{"id": "warehouse.raw.orders", "reason": LOCKED}],
    }
    assert stack.asset("warehouse.raw.orders") == before


def test_the_execution_that_holds_a_lock_may_write_and_a_lock_that_has_ended_keeps_nobody_out(
    stack: StackInMemory,
) -> None:
    """Row 71."""
    stack.write("warehouse.raw.orders")
    stack.write("warehouse.mart.orders")
    lock(stack, "warehouse.raw.orders", execution_id="execution-1")
    lock(stack, "warehouse.mart.orders", locked_until="2026-11-01T09:00:00Z")

    answer = stack.record(assets={"outputs": [RAW, MART]})

    assert answer["assets"]["updated"] == ["warehouse.raw.orders", "warehouse.mart.orders"]


def test_an_asset_larger_than_an_item_is_refused_and_the_others_are_written(stack: StackInMemory) -> None:
    """Row 35."""
    answer = stack.record(assets={"outputs": [RAW | {"notes": "x" * 380_000}, MART]})

    reason = "warehouse.raw.orders would be larger than 380 KB; keep its metadata short"
    assert answer["assets"]["failed"] == [{"id": "warehouse.raw.orders", "reason": reason}]
    assert answer["assets"]["created"] == ["warehouse.mart.orders"]


REFUSED = "namespace company.finance does not allow flows of company.sales; add it to its allowedNamespaces"


@pytest.mark.parametrize(
    ("allowed", "reason"),
    [
        ([], REFUSED),
        (["company.salesforce", "company.sales.eu"], REFUSED),
        (["company.sales"], None),
        (["company"], None),
    ],
)
def test_a_namespace_admits_the_flows_of_those_it_lists_and_of_their_children(
    stack: StackInMemory, allowed: list[str], reason: str | None
) -> None:
    """Row 37."""
    close(stack, "company.finance", *allowed)

    answer = stack.record(assets={"outputs": [RAW | {"namespace": "company.finance"}]})

    assert answer["assets"]["failed"] == ([{"id": "warehouse.raw.orders", "reason": reason}] if reason else [])
    assert answer["state"] == ("WARNING" if reason else "SUCCESS")


def test_the_stored_and_the_declared_namespace_must_both_admit_the_writer(stack: StackInMemory) -> None:
    """Row 37: nobody takes an asset out of a closed namespace by naming another."""
    stack.record(namespace="company.finance", assets={"outputs": [RAW | {"namespace": "company.finance"}]})
    close(stack, "company.finance")

    answer = stack.record(assets={"outputs": [RAW | {"namespace": "company.sales"}]})

    assert answer["assets"]["failed"] == [{"id": "warehouse.raw.orders", "reason": REFUSED}]
    assert stack.asset("warehouse.raw.orders").namespace == "company.finance"


def test_a_namespace_always_admits_itself_and_global_everybody(stack: StackInMemory) -> None:
    """Rows 5 and 37."""
    close(stack, "company.sales")

    answer = stack.record(assets={"outputs": [RAW | {"namespace": "company.sales"}, MART]})

    assert answer["assets"]["created"] == ["warehouse.raw.orders", "warehouse.mart.orders"]


def test_a_setting_holds_for_the_children_that_have_none(stack: StackInMemory) -> None:
    """Row 37."""
    close(stack, "company")
    close(stack, "company.open", "company.sales")
    outputs = [
        RAW | {"namespace": "company.finance.eu"},
        MART | {"namespace": "company.open"},
    ]

    answer = stack.record(assets={"outputs": outputs})

    assert [failed["id"] for failed in answer["assets"]["failed"]] == ["warehouse.raw.orders"]
    assert answer["assets"]["created"] == ["warehouse.mart.orders"]


def test_a_placeholder_in_a_closed_namespace_is_refused_like_any_write(stack: StackInMemory) -> None:
    """Row 37."""
    close(stack, "company.finance")

    answer = stack.record(assets={"inputs": [SHOP | {"namespace": "company.finance"}]})

    assert answer["assets"]["failed"] == [{"id": "shop.public.orders", "reason": REFUSED}]


def test_writing_revives_a_deleted_asset_and_reading_does_not(stack: StackInMemory) -> None:
    stack.write("warehouse.raw.orders")
    stack.delete("warehouse.raw.orders")

    read = stack.record(assets={"inputs": [{"id": "warehouse.raw.orders"}]})
    assert (read["assets"]["created"], stack.asset("warehouse.raw.orders").deleted) == ([], True)

    written = stack.write("warehouse.raw.orders")
    assert (written["assets"]["updated"], stack.asset("warehouse.raw.orders").deleted) == (
        ["warehouse.raw.orders"],
        False,
    )
