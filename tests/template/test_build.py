"""What a release build holds, and how large it is."""

from __future__ import annotations

import io
import subprocess
import zipfile
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tools.build import build

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = ("DependenciesLayer", "WaybillLayer")
RUNTIME = "python3.13"
LARGEST_UNPACKED = 250_000_000
"""Bytes of a function with its layers that Lambda takes."""
LARGEST_PACKED = {"DependenciesLayer": 12_500_000, "WaybillLayer": 1_000_000}
"""What the layers may come to as archives; a library that is added shows here."""


@cache
def folder(name: str) -> Path:
    return build("release").parent / name


@cache
def runtime_is_here() -> bool:
    try:
        return subprocess.run([RUNTIME, "--version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_holds_the_bytecode_of_the_runtimes_python_where_that_is_there(layer: str) -> None:
    sources = {path for path in folder(layer).rglob("*.py") if "lib2to3" not in path.parts}
    compiled = {path.parents[1] / f"{path.name.split('.')[0]}.py" for path in folder(layer).rglob("*.cpython-313.pyc")}
    other = [path for path in folder(layer).rglob("*.pyc") if not path.name.endswith(".cpython-313.pyc")]
    assert compiled == (sources if runtime_is_here() else set())
    assert other == []


def packed(layer: str) -> int:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packing:
        for path in sorted(folder(layer).rglob("*")):
            packing.write(path, path.relative_to(folder(layer)))
    return len(archive.getvalue())


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_as_small_as_it_was(layer: str) -> None:
    assert packed(layer) <= LARGEST_PACKED[layer]


def test_a_function_with_its_layers_is_one_that_lambda_takes() -> None:
    unpacked = sum(path.stat().st_size for layer in LAYERS for path in folder(layer).rglob("*") if path.is_file())
    assert unpacked < LARGEST_UNPACKED
