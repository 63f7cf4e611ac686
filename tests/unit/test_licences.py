"""The page of licences is what the packages that are installed say, and holds nothing that a company must fear."""

from __future__ import annotations

import re

from tools.licences import DOCUMENT, LAYER, page, pinned

HARMLESS = {"Apache-2.0", "MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC", "PSF-2.0", "Zlib", "CC0-1.0"}
HARMLESS |= {"MPL-2.0", "Unlicense", "CNRI-Python"}
ROW = re.compile(r"^\| (?P<name>[\w.-]+) \| (?P<version>\S+) \| (?P<licence>.+) \|$", re.MULTILINE)


def rows(text: str) -> dict[str, tuple[str, str]]:
    found = {row["name"]: (row["version"], row["licence"]) for row in ROW.finditer(text)}
    del found["package"], found["---"]
    return found


def test_the_page_says_what_the_packages_say() -> None:
    """A package that only another platform or Python has may stand there and not here."""
    written, found = rows(DOCUMENT.read_text()), rows(page())
    assert {name: written.get(name) for name in found} == found


def test_every_package_of_the_layer_is_there() -> None:
    assert {name for name, _ in pinned(LAYER.read_text())} <= set(rows(DOCUMENT.read_text()))


def test_no_licence_asks_for_the_source_of_what_uses_it() -> None:
    """MPL-2.0 asks for the source of changed files of its own alone."""
    for name, (_, licence) in rows(DOCUMENT.read_text()).items():
        assert set(re.findall(r"[\w.-]+", licence)) - {"AND", "OR", "WITH"} <= HARMLESS, name
