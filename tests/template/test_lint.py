"""The tools that know CloudFormation and SAM find nothing to complain about, and a user finds what he needs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tools.build import build, sam
from tools.emulator import ROOT


def test_sam_validates_the_template() -> None:
    assert "is a valid SAM Template" in sam("validate", "--lint", "--template", "template.yaml")


def test_cfn_lint_with_the_rules_for_serverless_finds_nothing() -> None:
    result = subprocess.run(
        [
            *(Path(sys.executable).parent / "cfn-lint", "--append-rules", "cfn_lint_serverless.rules"),
            # It looks for a log group by the function's default name; ours are asserted in test_functions.
            *("--ignore-checks", "WS1004", "--", "template.yaml"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "")


def test_every_parameter_says_what_it_is_for_and_has_its_place_in_the_console(template: dict[str, Any]) -> None:
    groups = template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]
    placed = [name for group in groups for name in group["Parameters"]]
    assert sorted(placed) == sorted(template["Parameters"])
    for parameter in template["Parameters"].values():
        assert parameter["Description"].endswith(".")
        assert "Default" in parameter
        assert "AllowedPattern" not in parameter or parameter["ConstraintDescription"]


def test_every_output_says_what_it_is_for(template: dict[str, Any]) -> None:
    for output in template["Outputs"].values():
        assert output["Description"].endswith(".")


@pytest.mark.parametrize("environment", ["local", "default", "prod"])
def test_samconfig_sets_only_parameters_that_exist(template: dict[str, Any], environment: str) -> None:
    config = tomllib.loads((ROOT / "samconfig.toml").read_text())
    overrides = config[environment]["deploy"]["parameters"]["parameter_overrides"]
    assert {override.split("=")[0] for override in overrides} <= set(template["Parameters"])


def test_the_release_build_is_for_python_3_13_on_arm_whatever_this_machine_is() -> None:
    python = build("release").parent / "DependenciesLayer" / "python"
    compiled = {path.name.split(".", 1)[1] for path in python.rglob("*.so") if "cpython-" in path.name}
    assert compiled == {"cpython-313-aarch64-linux-gnu.so"}


def test_the_local_build_is_for_this_python_and_for_the_runtimes_image() -> None:
    python = build("host").parent / "DependenciesLayer" / "python"
    versions = {path.name.split("-")[1] for path in python.rglob("_pydantic_core.cpython-*.so")}
    assert versions == {"313", f"{sys.version_info.major}{sys.version_info.minor}"}


def test_a_build_holds_the_source_of_our_package_and_nothing_else() -> None:
    layer = build("release").parent / "WaybillLayer" / "python"
    assert [entry.name for entry in layer.iterdir()] == ["waybill"]
    assert {path.suffix for path in layer.rglob("*") if path.is_file()} == {".py"}
