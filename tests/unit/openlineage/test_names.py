"""Names that would harm a destination are found before anything is sent (`openlineage.md` 3.1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.delivering import asset, delivery, exporter_config
from waybill.export.openlineage.mapping import CannotBeSent, Mapper
from waybill.model.asset import TABLE

BOTH = {TABLE: {"namespace": "ns", "name": "n"}}


def fault_of(
    namespace: str = "postgres://h:5432", name: str = "orders", backend: str = "marquez", **metadata: Any
) -> str:
    """Return why an event with such a dataset is not sent."""
    one = asset(metadata={"ns": namespace, "n": name, **metadata})
    mapper = Mapper(exporter_config("http://backend", backend=backend, mappings=BOTH))
    with pytest.raises(CannotBeSent) as caught:
        mapper.events(delivery(inputs=[asset("good", metadata={"ns": "a", "n": "b"})], outputs=[one]))
    return str(caught.value)


@pytest.mark.parametrize(
    ("character", "shown"),
    [
        (" ", "U+0020"), ("%", "'%' (U+0025)"), ("~", "'~' (U+007E)"), ("#", "'#' (U+0023)"), ("?", "'?' (U+003F)"),
        ("&", "'&' (U+0026)"), (",", "',' (U+002C)"), ('"', "'\"' (U+0022)"), ("[", "'[' (U+005B)"),
        ("(", "'(' (U+0028)"),
        ("é", "'é' (U+00E9)"), ("☃", "'☃' (U+2603)"), ("\x00", "U+0000"), ("\n", "U+000A"), ("\ud800", "U+D800"),
    ],
)  # fmt: skip
def test_marquez_says_which_character_of_a_namespace_it_would_die_of(character: str, shown: str) -> None:
    fault = fault_of(namespace=f"lake{character}house")
    assert fault.startswith("asset raw.orders: the dataset namespace ")
    assert fault.endswith(f" holds {shown} at position 4, which it does not take (marquez)")


def test_marquez_takes_the_namespaces_that_it_can_live_with() -> None:
    for namespace in (
        "postgres://h:5432",
        "s3://bucket",
        "arn:aws:glue:eu-central-1:000000000000",
        "a;b=c/d_e-f.g@h+i",
        "x" * 1024,
    ):
        one = asset(metadata={"ns": namespace, "n": "orders"})
        mapper = Mapper(exporter_config("http://backend", mappings=BOTH))
        assert len(mapper.events(delivery(inputs=[one], outputs=[]))) == 1


def test_marquez_takes_no_namespace_over_1024_characters() -> None:
    assert fault_of(namespace="x" * 1025).endswith(" is 1025 characters long; it takes 1024 (marquez)")


def test_the_namespace_under_which_a_mapped_asset_is_known_besides_is_checked_too() -> None:
    one = asset(namespace="com pany", metadata={"ns": "a", "n": "b"})
    mapper = Mapper(exporter_config("http://backend", mappings=BOTH))
    with pytest.raises(CannotBeSent, match=r"the namespace of its other name 'com pany' holds U\+0020 at position 3"):
        mapper.events(delivery(inputs=[one]))


def test_a_default_namespace_is_checked_too() -> None:
    mapper = Mapper(exporter_config("http://backend", defaultNamespace="no place"))
    with pytest.raises(CannotBeSent, match=r"the dataset namespace 'no place' holds U\+0020"):
        mapper.events(delivery(inputs=[asset(namespace=None)]))


@pytest.mark.parametrize("backend", ["marquez", "generic", "data-rentgen", "datahub"])
@pytest.mark.parametrize(("name", "shown"), [("a\x00b", "U+0000"), ("a\udfffb", "U+DFFF")])
def test_no_name_with_nul_or_a_lone_surrogate_is_sent_to_anybody(backend: str, name: str, shown: str) -> None:
    fault = fault_of(name=name, backend=backend)
    expected = f"the dataset name 'a\ufffdb' holds {shown} at position 1, which it does not take ({backend})"
    assert fault == f"asset raw.orders: {expected}"


def test_marquez_takes_no_name_too_long_for_its_index() -> None:
    assert "is 2004 bytes long; it takes 2000" in fault_of(name="é" * 1002)


def test_marquez_takes_no_dataset_name_over_255_characters_for_it_tells_names_apart_by_so_many() -> None:
    assert fault_of(name="x" * 256).endswith(" is 256 characters long; it takes 255 (marquez)")
    one = asset(metadata={"ns": "a", "n": "x" * 255})
    mapper = Mapper(exporter_config("http://backend", mappings=BOTH))
    assert len(mapper.events(delivery(inputs=[one], outputs=[]))) == 1


def test_marquez_takes_a_job_name_over_255_characters() -> None:
    mapper = Mapper(exporter_config("http://backend"))
    assert len(mapper.events(delivery(job="x" * 256))) == 1


def test_marquez_takes_no_column_over_255_characters() -> None:
    deep = [{"name": "a", "fields": [{"name": "c" * 256}]}]
    assert "the column name 'ccc" in fault_of(columns=deep)
    assert fault_of(columns=deep).endswith(" is 256 characters long; it takes 255 (marquez)")


def test_other_backends_take_what_only_marquez_dies_of() -> None:
    one = asset(metadata={"ns": "lake house", "n": "x" * 3000, "columns": ["c" * 300]})
    mapper = Mapper(exporter_config("http://backend", backend="generic", mappings=BOTH))
    assert len(mapper.events(delivery(inputs=[one], outputs=[]))) == 1


def test_data_rentgen_gets_no_namespace_that_no_url_parser_takes() -> None:
    fault = fault_of(namespace="postgres://[bad", backend="data-rentgen")
    assert (
        fault == "asset raw.orders: the dataset namespace 'postgres://[bad' is no URL that it can read (data-rentgen)"
    )


def test_a_job_name_with_nul_is_not_sent() -> None:
    mapper = Mapper(exporter_config("http://backend"))
    with pytest.raises(CannotBeSent, match=r"job 'orders.a\ufffd': its name holds U\+0000 at position 8"):
        mapper.events(delivery(job="a\x00", task_run_id="1"))


def test_emoji_names_are_sent_as_they_are() -> None:
    one = asset(metadata={"ns": "a", "n": "orders 😀"})
    (event,) = Mapper(exporter_config("http://backend", mappings=BOTH)).events(delivery(inputs=[one], outputs=[]))
    assert "orders 😀".encode() in event.body
