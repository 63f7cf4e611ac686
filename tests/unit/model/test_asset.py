"""The rules of an asset: its identity, its words, and how a declaration changes it (`kestra.md` 1.1, 2)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from waybill.faults import fault_lines
from waybill.ids import slugify
from waybill.model.asset import DATASET, EXTERNAL, FILE, TABLE, VM, Asset, AssetRef, DeclaredAsset, merged, placeholder

MONDAY, TUESDAY = datetime(2026, 11, 30, 9, tzinfo=UTC), datetime(2026, 12, 1, 9, tzinfo=UTC)


def declared(**properties: Any) -> DeclaredAsset:
    return DeclaredAsset.model_validate({"id": "warehouse.orders", "type": TABLE} | properties)


def stored(**properties: Any) -> Asset:
    return merged(None, declared(**properties), MONDAY)


def faults(**properties: Any) -> list[str]:
    with pytest.raises(ValidationError) as refused:
        declared(**properties)
    return fault_lines(refused.value)


@pytest.mark.parametrize("asset_id", ["a", "7", "arn:aws:s3:::lake", "Analytics.marts-1.fct_orders", "x" * 150])
def test_an_id_holds_letters_digits_and_four_signs(asset_id: str) -> None:
    """Row 2."""
    assert declared(id=asset_id).id == asset_id


@pytest.mark.parametrize("asset_id", [":a", ".a", "-a", "_a", "a b", "a/b", "é", "a\n", " a", "", "x" * 151])
def test_another_id_is_refused(asset_id: str) -> None:
    """Row 3, and the full match of row 2."""
    assert [fault.split(":")[0] for fault in faults(id=asset_id)] == ["id"]


@pytest.mark.parametrize("namespace", ["company", "company.team-1", "0.a_b", "x" * 150])
def test_a_namespace_is_lower_case(namespace: str) -> None:
    """Row 4."""
    assert declared(namespace=namespace).namespace == namespace


@pytest.mark.parametrize("namespace", ["Company", ".company", "company team", "company\n", "", "x" * 151])
def test_another_namespace_is_refused(namespace: str) -> None:
    """Row 4."""
    assert [fault.split(":")[0] for fault in faults(namespace=namespace)] == ["namespace"]


def test_an_output_without_namespace_becomes_global() -> None:
    """Row 5."""
    assert stored().namespace is None


@pytest.mark.parametrize("kind", ["company.infra.Snapshot", "AWS_BUCKET", TABLE, DATASET, FILE, VM, EXTERNAL])
def test_a_type_is_a_predefined_one_or_any_other_text(kind: str) -> None:
    """Rows 6 and 7."""
    assert stored(type=kind).type == kind


def test_a_blank_type_is_none() -> None:
    """Row 6."""
    assert faults(type=" ") == ["type: must not be blank"]


def test_a_name_and_a_description_in_markdown_are_kept() -> None:
    """Row 8."""
    asset = stored(displayName="Orders", description="One row per *order*.")

    assert (asset.display_name, asset.description) == ("Orders", "One row per *order*.")


def test_metadata_holds_anything() -> None:
    """Row 9."""
    metadata = {"owner": "sales", "rows": 12, "live": True, "columns": [{"name": "id"}], "labels": {"tier": "gold"}}

    assert stored(metadata=metadata).metadata == metadata


def test_unknown_keys_are_metadata_and_yield_to_what_metadata_says() -> None:
    """Row 10."""
    assert stored(owner="sales", system="s3", metadata={"owner": "finance"}).metadata == {
        "owner": "finance",
        "system": "s3",
    }


def test_what_is_declared_wins_and_what_is_omitted_stays() -> None:
    """Row 20."""
    before = stored(
        namespace="company", displayName="Orders", description="Old.", metadata={"owner": "sales", "system": "s3"}
    )

    after = merged(before, declared(type=VM, description="New.", metadata={"owner": "finance"}), TUESDAY)

    assert after == Asset(
        id="warehouse.orders",
        type=VM,
        namespace="company",
        display_name="Orders",
        description="New.",
        metadata={"owner": "finance", "system": "s3"},
        created=MONDAY,
        updated=TUESDAY,
    )


def test_a_declared_namespace_moves_the_asset() -> None:
    """Row 20: a Global asset moves into a namespace, and from one into another."""
    assert merged(stored(), declared(namespace="company"), TUESDAY).namespace == "company"
    assert merged(stored(namespace="company"), declared(namespace="other"), TUESDAY).namespace == "other"


def test_null_removes_a_metadata_key() -> None:
    """Row 21."""
    before = stored(metadata={"owner": "sales", "system": "s3", "labels": {"tier": "gold", "pii": True}})

    after = merged(before, declared(metadata={"owner": None, "labels": {"pii": None}}), TUESDAY)

    assert after.metadata == {"system": "s3", "labels": {"tier": "gold"}}


def test_lists_unite_in_the_order_in_which_items_came() -> None:
    """Row 22."""
    before = stored(metadata={"tags": ["b", "a"]})

    assert merged(before, declared(metadata={"tags": ["c", "a", "c"]}), TUESDAY).metadata == {"tags": ["b", "a", "c"]}


def test_what_is_not_the_same_json_is_not_the_same_item() -> None:
    """Row 22: Python would take 1, 1.0 and true for one."""
    before = stored(metadata={"values": [1, {"a": 1, "b": 2}]})

    after = merged(before, declared(metadata={"values": [True, {"b": 2, "a": 1}, 1]}), TUESDAY)

    assert after.metadata["values"] == [1, {"a": 1, "b": 2}, True]


def test_maps_merge_deeply_and_a_scalar_replaces_whatever_was_there() -> None:
    before = stored(metadata={"labels": {"tier": {"now": "gold"}, "pii": "no"}, "owner": ["sales"]})

    after = merged(before, declared(metadata={"labels": {"tier": {"next": "iron"}}, "owner": "finance"}), TUESDAY)

    assert after.metadata == {"labels": {"tier": {"now": "gold", "next": "iron"}, "pii": "no"}, "owner": "finance"}


def test_external_never_overrides_a_real_type_and_is_upgraded_by_one() -> None:
    """Row 23."""
    assert merged(stored(), declared(type=EXTERNAL), TUESDAY).type == TABLE
    assert merged(stored(type=EXTERNAL), declared(), TUESDAY).type == TABLE


def test_updated_moves_on_every_write_and_created_never() -> None:
    """Row 24: also when nothing changes."""
    after = merged(stored(), declared(), TUESDAY)

    assert (after.created, after.updated) == (MONDAY, TUESDAY)


def test_writing_revives_a_deleted_asset() -> None:
    before = stored(metadata={"owner": "sales"}).model_copy(update={"deleted": True})

    after = merged(before, declared(), TUESDAY)

    assert (after.deleted, after.metadata, after.created) == (False, {"owner": "sales"}, MONDAY)


def test_a_placeholder_is_external_in_the_namespace_of_the_flow_unless_the_input_says_otherwise() -> None:
    """Rows 17, 18 and 19."""
    plain = placeholder(AssetRef("shop.orders"), "company.sales", MONDAY)
    typed = placeholder(AssetRef("shop.orders", type=TABLE, namespace="shop"), "company.sales", MONDAY)

    assert (plain.type, plain.namespace, plain.created, plain.updated) == (EXTERNAL, "company.sales", MONDAY, MONDAY)
    assert (typed.type, typed.namespace) == (TABLE, "shop")


def test_slugify_makes_an_id_of_user_input() -> None:
    """Row 88."""
    assert declared(id=f"report.{slugify('  Größe & Übersicht: Q3/2026 ')}").id == "report.groe-ubersicht-q3-2026"
