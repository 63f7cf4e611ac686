"""The properties of an exporter: each wrong value is named by its path, with what to do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest
import yarl

from waybill.errors import InvalidFlow
from waybill.export.openlineage.config import OpenLineageAssetExporter
from waybill.model.flow import parse_flow

GOOD = {"id": "marquez", "type": "OpenLineageAssetExporter", "uri": "http://marquez:5000"}
KNOWN_BACKENDS = "'marquez', 'data-rentgen', 'datahub', 'openmetadata', 'datazone', 'snowflake', 'atlan' or 'generic'"
SECRET = {"secret": "arn:aws:secretsmanager:eu-central-1:000000000000:secret:lineage"}


def faults_of(**properties: Any) -> list[str]:
    """Return the faults of an exporter with these properties, their paths within the exporter."""
    exporter = {name: value for name, value in {**GOOD, **properties}.items() if value is not None}
    with pytest.raises(InvalidFlow) as caught:
        parse_flow([{"id": "ship", "type": "AssetShipper", "assetExporters": [exporter]}])
    prefix = "tasks[0].assetExporters[0]."
    return [fault.removeprefix(prefix) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("properties", "fault"),
    [
        ({"uri": None}, "uri: is required"),
        ({"uri": "marquez:5000"}, "uri: must be a URL with scheme and host such as http://marquez:5000"),
        ({"uri": "//marquez:5000"}, "uri: must be a URL with scheme and host such as http://marquez:5000"),
        ({"uri": "ftp://marquez"}, "uri: must be a URL with scheme and host such as http://marquez:5000"),
        ({"uri": "http://marquez:99999"}, "uri: must be a URL with scheme and host such as http://marquez:5000"),
        ({"uri": "http://[bad"}, "uri: must be a URL with scheme and host such as http://marquez:5000"),
        ({"uri": "http://[::1]x"}, "uri: must be a URL with scheme and host such as http://marquez:5000"),
        ({"uri": "http://a:b@marquez"}, "uri: must not hold credentials; say them in auth"),
        ({"uri": "http://marquez?x=1"}, "uri: must end with its path; a query or fragment has no meaning here"),
        ({"urii": "x"}, "urii: unknown property; did you mean uri?"),
        ({"backend": "marqez"}, f"backend: must be {KNOWN_BACKENDS}"),
        (
            {"backend": "datazone", "uri": None},
            "uri: backend datazone needs domainId, the id of its domain, instead",
        ),
        ({"domainId": "dzd_1"}, "domainId: is only for backend datazone; leave it out"),
        (
            {"backend": "datazone", "domainId": "x"},
            "domainId: must be the id of a DataZone domain such as dzd_4bfhw3w7qk5xqd",
        ),
        ({"mappings": {"T": {"nmae": "x"}}}, "mappings.T.nmae: unknown property; did you mean name?"),
        (
            {"mappings": {"a.b.Table": {"nmespace": "x"}}},
            "mappings.a.b.Table.nmespace: unknown property; did you mean namespace?",
        ),
        ({"mappings": {"T": {"name": " "}}}, "mappings.T.name: must not be blank"),
        ({"mappings": []}, "mappings: must be a JSON object"),
        ({"auth": {}}, "auth.type: is required"),
        ({"auth": "none"}, "auth: must be a JSON object"),
        ({"auth": {"type": "bearer"}}, "auth.token: is required"),
        (
            {"auth": {"type": "bearer", "tokn": SECRET, "token": SECRET}},
            "auth.tokn: unknown property; did you mean token?",
        ),
        (
            {"auth": {"type": "bearer", "token": "abc"}},
            "auth.token: must not be written in the flow; give {secret: <ARN>} or {parameter: <name>}",
        ),
        ({"auth": {"type": "bearer", "token": {}}}, "auth.token: needs either secret (an ARN) or parameter (a name)"),
        (
            {"auth": {"type": "basic", "username": "a", "password": {**SECRET, "parameter": "x"}}},
            "auth.password: needs either secret (an ARN) or parameter (a name)",
        ),
        (
            {"auth": {"type": "bearer", "token": SECRET, "username": "x"}},
            "auth.username: unknown property; known are token, type",
        ),
        (
            {"auth": {"type": "bearer", "token": {"paramter": "x"}}},
            "auth.token.paramter: unknown property; did you mean parameter?",
        ),
        (
            {"auth": {"type": "basic", "username": "a:b", "password": SECRET}},
            "auth.username: must not hold a colon, which ends the name where it is sent",
        ),
        (
            {"auth": {"type": "apiKey", "apiKey": SECRET, "header": "Host"}},
            "auth.header: Host is set by the exporter; leave it out",
        ),
        (
            {"auth": {"type": "oauth2", "tokenEndpoint": "http://u:p@h/t", "clientId": "c", "clientSecret": SECRET}},
            "auth.tokenEndpoint: must not hold credentials; say them in clientId and clientSecret",
        ),
        ({"timeout": {"conect": 1}}, "timeout.conect: unknown property; did you mean connect?"),
        ({"timeout": {"total": 0}}, "timeout.total: must be greater than 0"),
        ({"timeout": {"giveUp": "soon"}}, "timeout.giveUp: must be a valid number"),
        ({"timeout": {"connect": "5"}}, "timeout.connect: must be a valid number"),
        ({"timeout": {"connect": True}}, "timeout.connect: must be a valid number"),
        ({"endpoint": " "}, "endpoint: must not be blank"),
        ({"headers": {"bad name": "x"}}, "headers: 'bad name' is no name of a header"),
        ({"headers": {"Content-Type": "x"}}, "headers: Content-Type is set by the exporter; leave it out"),
        ({"headers": {"Authorization": "x"}}, "headers: Authorization is made of auth; say it there"),
        ({"headers": {"X-A": "a\nb"}}, "headers: the value of X-A holds a character that no header may hold"),
        ({"compression": "zip"}, "compression.type: must be 'none' or 'gzip'"),
        ({"maxInFlight": 0}, "maxInFlight: must be greater than or equal to 1"),
        ({"maxInFlight": "8"}, "maxInFlight: must be a valid integer"),
        ({"eventTypes": []}, "eventTypes: needs at least 1"),
        (
            {"eventTypes": ["DONE"]},
            "eventTypes[0]: must be 'START', 'RUNNING', 'COMPLETE', 'ABORT', 'FAIL' or 'OTHER'",
        ),
        ({"defaultNamespace": ""}, "defaultNamespace: must not be blank"),
        ({"onRejected": "IGNORE"}, "onRejected: must be 'DEAD_LETTER' or 'FAIL'"),
        ({"startEvents": "yes"}, "startEvents: must be a valid boolean"),
        ({"parentRun": 1}, "parentRun: must be a valid boolean"),
        ({"runIds": "uuid4"}, "runIds: must be 'keep' or 'uuid7'"),
        (
            {"verifyUnknown": True, "backend": "datahub"},
            "verifyUnknown: is only for backend marquez, which can be asked for a run",
        ),
        ({"tls": {"verify": False}}, "tls.verify: unknown property; known are ca, caFile"),
        ({"tls": {"ca": SECRET, "caFile": "/x"}}, "tls.caFile: stands beside ca; leave one of them out"),
        (
            {"proxy": "http://u:p@proxy"},
            "proxy.uri: must not hold credentials; say them in proxy.username and proxy.password",
        ),
        ({"proxy": {"uri": "http://proxy", "password": SECRET}}, "proxy.password: is of no use without username"),
        (
            {"proxy": {"uri": "http://proxy", "username": "a:b"}},
            "proxy.username: must not hold a colon, which ends the name where it is sent",
        ),
        (
            {"proxy": {"uri": "http://proxy", "username": "a", "password": {"secrte": "x"}}},
            "proxy.password.secrte: unknown property; did you mean secret?",
        ),
        ({"proxy": "proxy:3128"}, "proxy.uri: must be a URL with scheme and host such as http://marquez:5000"),
        (
            {"namespaceRewrites": [{"pattern": "(", "replacement": "x"}]},
            "namespaceRewrites[0].pattern: is no regular expression: missing ), unterminated subpattern at position 0",
        ),
        (
            {"namespaceRewrites": [{"pattern": "(a)", "replacement": r"\2"}]},
            "namespaceRewrites[0].replacement: does not fit the pattern: invalid group reference 2 at position 1",
        ),
        (
            {"namespaceRewrites": [{"pattern": "(?P<a>a)", "replacement": r"\g<b>"}]},
            "namespaceRewrites[0].replacement: does not fit the pattern: unknown group name 'b'",
        ),
        (
            {"namespaceRewrites": [{"pattern": "a", "replacement": r"\q"}]},
            r"namespaceRewrites[0].replacement: does not fit the pattern: bad escape \q at position 0",
        ),
        (
            {"namespaceRewrites": [{"pattern": "a{99999999999}", "replacement": "x"}]},
            "namespaceRewrites[0].pattern: is no regular expression: the repetition number is too large",
        ),
        ({"endpoint": "a\r\nb"}, "endpoint: holds a character that no address may hold"),
        ({"endpoint": "a" * 2001}, "endpoint: is 2001 characters long; the most is 2000"),
        ({"uri": "http://host\tname"}, "uri: holds a character that no address may hold"),
        ({"uri": "http://host\r\n"}, "uri: holds a character that no address may hold"),
        ({"batch": 10}, "batch: backend marquez takes one event at a time; leave it out"),
    ],
)
def test_a_wrong_value_is_named_by_its_path(properties: dict[str, Any], fault: str) -> None:
    assert faults_of(**properties) == [fault]


@pytest.mark.parametrize(
    "host", ["a..b", ".a", "256.256.256.256", "host\\x", "a" * 64, "a." * 127, "ho st", "a%41", "[v1.x]", "☃..de"]
)
def test_a_host_that_cannot_be_is_named_before_anything_is_sent(host: str) -> None:
    said = host.strip("[]")
    said_as: dict[str, dict[str, Any]] = {
        "uri": {"uri": f"http://{host}/x"},
        "proxy.uri": {"proxy": f"http://{host}"},
        "auth.tokenEndpoint": {
            "auth": {"type": "oauth2", "tokenEndpoint": f"https://{host}", "clientId": "c", "clientSecret": SECRET}
        },
    }
    for name, properties in said_as.items():
        assert faults_of(**properties) == [f"{name}: its host {said!r} is no name or address of a machine"]


@pytest.mark.parametrize(
    "host", ["a_b", "a.b.", "xn--bcher-kva.de", "bücher.de", "[::1]", "[fe80::1%25eth0]", "127.0.0.1"]
)
def test_whatever_names_a_machine_is_a_host(host: str) -> None:
    config = OpenLineageAssetExporter.model_validate({**GOOD, "uri": f"http://{host}:5000"})
    assert str(httpx.URL(config.url)).startswith("http://")
    assert yarl.URL(str(httpx.URL(config.url)), encoded=True).port == 5000


@pytest.mark.parametrize("header", ["X-Key\r\nX-Evil: 1", "X Key", ":", "X-Kéy"])
def test_a_header_of_an_api_key_is_the_name_of_one(header: str) -> None:
    faults = faults_of(auth={"type": "apiKey", "apiKey": SECRET, "header": header})
    assert faults == [f"auth.header: {header!r} is no name of a header"]


@pytest.mark.parametrize("name", ["Host", "transfer-encoding", "Content-Length", "content-type"])
def test_a_header_that_the_exporter_sets_is_not_an_api_keys(name: str) -> None:
    faults = faults_of(auth={"type": "apiKey", "apiKey": SECRET, "header": name})
    assert faults == [f"auth.header: {name} is set by the exporter; leave it out"]


@pytest.mark.parametrize("pattern", ["a(b)?", "(?x) a(b)? # either", "a|(b)"])
def test_a_replacement_may_use_the_groups_of_its_pattern(pattern: str) -> None:
    rewrite = {"pattern": pattern, "replacement": r"x\1"}
    config = OpenLineageAssetExporter.model_validate({**GOOD, "namespaceRewrites": [rewrite]})
    assert config.namespace_rewrites[0].replacement == r"x\1"


def test_a_scheme_in_capitals_is_the_same_scheme() -> None:
    config = OpenLineageAssetExporter.model_validate({**GOOD, "uri": "HTTPS://Marquez/Path", "proxy": "HTTP://Proxy"})
    assert config.url == "https://Marquez/Path/api/v1/lineage"
    assert config.proxy is not None
    assert config.proxy.uri == "http://Proxy"


def test_all_faults_are_named_at_once() -> None:
    assert faults_of(uri="x", maxInFlight=0, onRejected="NO") == [
        "uri: must be a URL with scheme and host such as http://marquez:5000",
        "maxInFlight: must be greater than or equal to 1",
        "onRejected: must be 'DEAD_LETTER' or 'FAIL'",
    ]


def test_a_faulty_secret_is_not_repeated_in_the_message() -> None:
    faults = faults_of(auth={"type": "apiKey", "apiKey": "s3cr3t-value"})
    assert "s3cr3t-value" not in "\n".join(faults)


def test_what_is_not_said_is_as_designed() -> None:
    config = OpenLineageAssetExporter.model_validate(GOOD)
    assert (config.backend, config.default_namespace, config.on_rejected) == ("marquez", "default", "DEAD_LETTER")
    assert (config.max_in_flight, config.start_events, config.verify_unknown) == (10, False, False)
    timeout = config.timeout
    assert (timeout.connect, timeout.first_byte, timeout.total, timeout.give_up) == (5, 60, 120, 60)
    assert config.auth.type == "none"


@pytest.mark.parametrize(
    ("properties", "url"),
    [
        ({}, "http://marquez:5000/api/v1/lineage"),
        ({"uri": "http://marquez:5000/"}, "http://marquez:5000/api/v1/lineage"),
        ({"uri": "https://gateway/lineage"}, "https://gateway/lineage/api/v1/lineage"),
        ({"endpoint": "/events"}, "http://marquez:5000/events"),
        ({"backend": "data-rentgen"}, "http://marquez:5000/v1/openlineage"),
        ({"backend": "datahub"}, "http://marquez:5000/openapi/openlineage/api/v1/lineage"),
        ({"backend": "openmetadata"}, "http://marquez:5000/api/v1/openlineage/lineage"),
        ({"backend": "snowflake"}, "http://marquez:5000/api/v2/lineage/external-lineage"),
        ({"backend": "atlan"}, "http://marquez:5000/events/openlineage/generic-openlineage/api/v1/lineage"),
    ],
)
def test_the_address_is_the_uri_and_the_endpoint(properties: dict[str, Any], url: str) -> None:
    assert OpenLineageAssetExporter.model_validate({**GOOD, **properties}).url == url


def test_reading_a_flow_imports_nothing_that_posts() -> None:
    heavy = "('aiohttp', 'httpx', 'botocore', 'ssl')"
    code = f"import sys, waybill.model.flow; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "[]\n"
