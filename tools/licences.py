"""The licences of what Waybill depends on: `python -m tools.licences` writes docs/licences.md anew."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING

from tools.emulator import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.metadata import Distribution

DOCUMENT = ROOT / "docs" / "licences.md"
LAYER = ROOT / "layers" / "dependencies" / "requirements.txt"
DEVELOPMENT = ROOT / "requirements" / "dev.txt"
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_CLASSIFIED = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
_WRITTEN = {"Apache 2.0": "Apache-2.0", "Apache License 2.0": "Apache-2.0", "Apache License, Version 2.0": "Apache-2.0"}
_TEXTS = {"Neither the name of": "BSD-3-Clause", "Apache License": "Apache-2.0"}
"""Words that only the text of one licence has."""
_LONGEST_NAME = 40

_HEAD = """# Licences

Waybill is under the [Apache License 2.0](../LICENSE). `python -m tools.licences` writes this page from what the
packages say of themselves. boto3 and what it needs (Apache-2.0, MIT) are part of the Lambda runtime.
"""


def main() -> None:
    """Write the page."""
    DOCUMENT.write_text(page())


def page() -> str:
    """Return the page."""
    layer = dict(pinned(LAYER.read_text()))
    others = {name: version for name, version in pinned(DEVELOPMENT.read_text()) if name not in layer}
    return (
        f"{_HEAD}\n## In the layer, and so in your account\n\n{_table(layer)}"
        f"\n## On a machine that builds, tests or uses the commands\n\n{_table(others)}"
    )


def pinned(lock: str) -> Iterator[tuple[str, str]]:
    """Yield the name and version of each package that a lock pins."""
    yield from _PINNED.findall(lock)


def licence(package: Distribution) -> str:
    """Return the licence of an installed package, as an SPDX expression where it can be told."""
    said = package.metadata.json
    if "license_expression" in said:
        return str(said["license_expression"])
    classifiers = [line for line in said.get("classifier", ()) if line.startswith("License ::")]
    classified = {_CLASSIFIED[name] for line in classifiers if (name := line.rsplit(" :: ", 1)[1]) in _CLASSIFIED}
    if classified:
        return " OR ".join(sorted(classified))
    written = str(said.get("license", "")).strip()
    if written and len(written) <= _LONGEST_NAME:
        return _WRITTEN.get(written, written)
    text = "\n".join((written, *_texts(package)))
    return next((name for words, name in _TEXTS.items() if words in text), "see its text")


def _texts(package: Distribution) -> Iterator[str]:
    for file in package.files or ():
        if "licen" in file.name.lower():
            yield file.read_text()


def _table(packages: dict[str, str]) -> str:
    rows = [f"| {name} | {version} | {found} |" for name, version, found in _found(packages)]
    return "\n".join(("| package | version | licence |", "| --- | --- | --- |", *rows)) + "\n"


def _found(packages: dict[str, str]) -> Sequence[tuple[str, str, str]]:
    """Return those that are installed here; a lock pins others for other platforms."""
    found = []
    for name, version in sorted(packages.items()):
        try:
            found.append((name, version, licence(distribution(name))))
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()
