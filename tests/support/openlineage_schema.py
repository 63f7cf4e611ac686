"""Validates OpenLineage events against the spec's schemas, facets and formats included, without a network.

The schemas are read where they are, from `../shared/openlineage-spec` or the folder that OPENLINEAGE_SPEC names.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

if TYPE_CHECKING:
    from collections.abc import Iterator

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "openlineage-spec"
_CORE = "https://openlineage.io/spec/2-0-2/OpenLineage.json"
_PLACES = {
    "RunFacet": "run",
    "JobFacet": "job",
    "DatasetFacet": "dataset",
    "InputDatasetFacet": "input",
    "OutputDatasetFacet": "output",
}


class InvalidEvent(AssertionError):
    """An event is not as the spec says; one line per fault."""


def spec_folder() -> Path:
    """Return where the schemas are."""
    return Path(os.environ.get("OPENLINEAGE_SPEC") or _BESIDE)


def check_event(event: dict[str, Any]) -> None:
    """Check an event: its kind by the keys present, each standard facet by its place and key.

    Raises:
        InvalidEvent: naming every fault by its path.
    """
    faults = [*_core_faults(event), *_facet_faults(event)]
    if faults:
        raise InvalidEvent("\n".join(faults))


@cache
def facet_validators() -> dict[tuple[str, str], Draft202012Validator]:
    """Return the validator of every standard facet by place (`run`, `job`, `dataset`, `input`, `output`) and key."""
    documents = {path.name: json.loads(path.read_text()) for path in sorted((spec_folder() / "facets").glob("*.json"))}
    return {
        (place, key): _validator(document["$id"] + reference)
        for document in documents.values()
        for key, said in document.get("properties", {}).items()
        for reference in _references(said)
        for place in _places(document, reference)
    }


@cache
def _registry() -> Registry[Any]:
    folder = spec_folder()
    if not (folder / "OpenLineage.json").is_file():
        raise FileNotFoundError(f"the OpenLineage schemas are not in {folder}; set OPENLINEAGE_SPEC to their folder")
    documents = [
        json.loads(path.read_text()) for path in (folder / "OpenLineage.json", *(folder / "facets").glob("*.json"))
    ]
    resources = [(document["$id"], DRAFT202012.create_resource(document)) for document in documents]
    registry: Registry[Any] = Registry().with_resources(resources)
    return registry


def _validator(reference: str) -> Draft202012Validator:
    return Draft202012Validator({"$ref": reference}, registry=_registry(), format_checker=_formats())


@cache
def _formats() -> FormatChecker:
    checker = FormatChecker(formats=("date-time", "date", "uuid", "uri"))
    missing = {"date-time", "uuid", "uri"} - set(checker.checkers)
    if missing:
        raise RuntimeError(
            f"formats that are not checked: {sorted(missing)}; install rfc3339-validator, rfc3986-validator"
        )
    return checker


@cache
def _core(kind: str) -> Draft202012Validator:
    return _validator(f"{_CORE}#/$defs/{kind}")


def _core_faults(event: dict[str, Any]) -> Iterator[str]:
    kind = "RunEvent" if "run" in event else "JobEvent" if "job" in event else "DatasetEvent"
    for error in _core(kind).iter_errors(event):
        yield f"{error.json_path}: {error.message}"


def _facet_faults(event: dict[str, Any]) -> Iterator[str]:
    for path, place, facets in _facets(event):
        for key, facet in facets.items():
            validator = facet_validators().get((place, key))
            if validator is not None:
                for error in validator.iter_errors(facet):
                    yield f"{path}.{key}{error.json_path.removeprefix('$')}: {error.message}"


def _facets(event: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for thing in ("run", "job", "dataset"):
        yield f"$.{thing}.facets", thing, event.get(thing, {}).get("facets", {})
    for side, own in (("inputs", "input"), ("outputs", "output")):
        for position, dataset in enumerate(event.get(side, ())):
            path = f"$.{side}[{position}]"
            yield f"{path}.facets", "dataset", dataset.get("facets", {})
            yield f"{path}.{own}Facets", own, dataset.get(f"{own}Facets", {})


def _places(document: dict[str, Any], reference: str) -> set[str]:
    """Say where a definition may stand: its bases, followed through the file's own, lead to the core's."""
    definition = document["$defs"][reference.rsplit("/", 1)[-1]]
    places: set[str] = set()
    for target in _references(definition):
        name = target.rsplit("/", 1)[-1]
        if target.startswith("#"):
            places |= _places(document, target)
        elif name in _PLACES:
            places.add(_PLACES[name])
    return places


def _references(said: dict[str, Any]) -> list[str]:
    alternatives = [said, *said.get("allOf", ()), *said.get("oneOf", ()), *said.get("anyOf", ())]
    return [part["$ref"] for part in alternatives if "$ref" in part]
