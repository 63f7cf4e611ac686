"""How the exporter says who it is, with secrets that it reads by reference."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from moto import mock_aws

from tests.support.certificates import Authority
from tests.support.delivering import Shipped, deliveries, delivery, run_id, ship
from tests.support.proxies import Proxy
from tests.support.receivers import Receiver, Reply, Request
from waybill.errors import OutOfTime
from waybill.export.openlineage import tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from waybill.export.ports import Delivery

SECRET = "s3cr3t-value"  # noqa: S105 - of a test


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Secrets Manager and Parameter Store in this process, and nothing kept of other tests."""
    from aws_lambda_powertools.utilities.parameters import clear_caches
    from aws_lambda_powertools.utilities.parameters.constants import DEFAULT_PROVIDERS

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        clear_caches()  # type: ignore[no-untyped-call]
        DEFAULT_PROVIDERS.clear()
        yield


def keep_secret(name: str, value: str) -> None:
    """Put a secret into Secrets Manager."""
    boto3.client("secretsmanager", region_name="us-east-1").create_secret(Name=name, SecretString=value)


def change_secret(name: str, value: str) -> None:
    """Give a secret another value."""
    boto3.client("secretsmanager", region_name="us-east-1").put_secret_value(SecretId=name, SecretString=value)


def keep_parameter(name: str, value: str) -> None:
    """Put a secret into Parameter Store."""
    boto3.client("ssm", region_name="us-east-1").put_parameter(Name=name, Value=value, Type="SecureString")


def shipped_to(receiver: Receiver, parcels: list[Delivery], auth: dict[str, Any], **properties: Any) -> Shipped:
    """Ship to a receiver that listens on a free port."""

    async def run() -> Shipped:
        async with receiver.listening():
            return await ship(receiver.url, parcels, auth=auth, **properties)

    return asyncio.run(run())


def sent_with(auth: dict[str, Any]) -> dict[str, str]:
    """Return the headers of an event that was sent with an `auth`."""
    receiver = Receiver()
    shipped = shipped_to(receiver, [delivery()], auth)
    assert shipped.error is None
    return receiver.requests[0].headers


def test_no_credentials_send_no_header() -> None:
    assert "authorization" not in sent_with({"type": "none"})


def test_an_api_key_is_sent_as_openlineages_clients_do() -> None:
    keep_parameter("/lineage/key", SECRET)
    headers = sent_with({"type": "apiKey", "apiKey": {"parameter": "/lineage/key"}})
    assert headers["authorization"] == f"Bearer {SECRET}"


def test_an_api_key_may_have_a_header_of_its_own() -> None:
    keep_secret("lineage/key", SECRET)
    headers = sent_with({"type": "apiKey", "apiKey": {"secret": "lineage/key"}, "header": "X-Api-Key"})
    assert headers["x-api-key"] == SECRET
    assert "authorization" not in headers


def test_a_bearer_token_may_be_one_field_of_a_secret() -> None:
    keep_secret("lineage", json.dumps({"token": SECRET, "other": 1}))
    headers = sent_with({"type": "bearer", "token": {"secret": "lineage", "field": "token"}})
    assert headers["authorization"] == f"Bearer {SECRET}"


def test_basic_sends_name_and_password() -> None:
    keep_secret("lineage", SECRET)
    headers = sent_with({"type": "basic", "username": "waybill", "password": {"secret": "lineage"}})
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")).decode() == f"waybill:{SECRET}"


def test_sigv4_signs_each_request_with_its_body() -> None:
    receiver = Receiver()
    auth = {"type": "sigv4", "region": "eu-central-1"}
    assert shipped_to(receiver, deliveries(2), auth, compression={"type": "gzip", "over": 10}).error is None
    for request in receiver.requests:
        credentials = boto3.Session().get_credentials()
        assert credentials is not None
        signer = SigV4Auth(credentials, "execute-api", "eu-central-1")
        same = AWSRequest("POST", f"{receiver.url}{request.target}", data=gzip.compress(request.body, 3, mtime=0))
        for name in ("content-type", "x-amz-date"):
            same.headers[name] = request.headers[name]
        same.context["timestamp"] = request.headers["x-amz-date"]
        signature = signer.signature(signer.string_to_sign(same, signer.canonical_request(same)), same)
        assert request.headers["authorization"].endswith(f"Signature={signature}")


def test_a_client_certificate_is_shown_in_the_handshake(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.bundle)
    own = authority.give()
    keep_secret("certificate", own.certificate)
    keep_secret("key", own.key)
    receiver = Receiver()
    auth = {"type": "clientCertificate", "certificate": {"secret": "certificate"}, "privateKey": {"secret": "key"}}

    async def run(auth: dict[str, Any]) -> Shipped:
        async with receiver.listening(authority.server(tmp_path, authority.give(), asks_client=True)):
            tls = {"caFile": str(tmp_path / "ca.pem")}
            return await ship(receiver.url, [delivery()], auth=auth, tls=tls, timeout={"giveUp": 0.5})

    assert asyncio.run(run({"type": "none"})).error is not None
    assert asyncio.run(run(auth)).counts == (1, 0, 0)
    assert receiver.run_ids == [run_id(delivery())]


def test_an_own_authority_may_be_kept_as_a_parameter(tmp_path: Path) -> None:
    authority = Authority()
    keep_parameter("/lineage/ca", authority.bundle)
    receiver = Receiver()

    async def run() -> Shipped:
        async with receiver.listening(authority.server(tmp_path, authority.give())):
            return await ship(receiver.url, [delivery()], tls={"ca": {"parameter": "/lineage/ca"}})

    assert asyncio.run(run()).counts == (1, 0, 0)


def test_a_scheme_in_capitals_asks_for_the_own_authority_too(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.bundle)
    receiver = Receiver()

    async def run() -> Shipped:
        async with receiver.listening(authority.server(tmp_path, authority.give())):
            uri = receiver.url.replace("https", "HTTPS")
            return await ship(uri, [delivery()], tls={"caFile": str(tmp_path / "ca.pem")}, timeout={"giveUp": 0.5})

    assert asyncio.run(run()).counts == (1, 0, 0)


def test_a_token_endpoint_of_the_own_authority_is_trusted_beside_a_backend_without_tls(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "ca.pem").write_text(authority.bundle)
    keep_secret("lineage", SECRET)
    tokens = Receiver(lambda _: Reply(200, b'{"access_token": "t"}', stored=False))
    receiver = Receiver()

    async def run() -> Shipped:
        async with receiver.listening(), tokens.listening(authority.server(tmp_path, authority.give())):
            auth = {
                "type": "oauth2",
                "tokenEndpoint": tokens.url,
                "clientId": "c",
                "clientSecret": {"secret": "lineage"},
            }
            return await ship(receiver.url, [delivery()], auth=auth, tls={"caFile": str(tmp_path / "ca.pem")})

    assert asyncio.run(run()).counts == (1, 0, 0)
    assert receiver.requests[0].headers["authorization"] == "Bearer t"


def test_a_proxy_is_shown_a_password_of_any_characters() -> None:
    keep_secret("proxy", "pässwörd€")
    login = f"Basic {base64.b64encode('waybill:pässwörd€'.encode()).decode()}"
    receiver = Receiver()

    async def run() -> Shipped:
        async with receiver.listening(), Proxy(login).listening() as proxy:
            through = {"uri": proxy.url, "username": "waybill", "password": {"secret": "proxy"}}
            return await ship(receiver.url, [delivery()], proxy=through)

    assert asyncio.run(run()).counts == (1, 0, 0)


def test_a_401_reads_the_secret_again_and_goes_on_with_the_new_one() -> None:
    keep_secret("lineage", "old")

    def behave(request: Request) -> Reply:
        change_secret("lineage", "new")
        return Reply(201 if request.headers["authorization"] == "Bearer new" else 401)

    receiver = Receiver(behave)
    parcels = deliveries(12, jobs=4)
    shipped = shipped_to(receiver, parcels, {"type": "bearer", "token": {"secret": "lineage"}})
    assert shipped.error is None
    assert sorted(receiver.run_ids) == sorted(run_id(parcel) for parcel in parcels)
    assert shipped.letters == []


def test_a_second_401_stops_the_exporter() -> None:
    keep_secret("lineage", "old")
    receiver = Receiver(lambda _: Reply(401))
    shipped = shipped_to(receiver, deliveries(3), {"type": "bearer", "token": {"secret": "lineage"}})
    assert str(shipped.error) == "HTTP 401: it does not accept the credentials; look at auth"
    assert len(receiver.requests) == 2
    assert shipped.letters == []


class TestOAuth2:
    def endpoint(self, receiver: Receiver, **token: Any) -> dict[str, Any]:
        """Make the receiver a token endpoint too, and return the `auth` that uses it."""
        keep_secret("lineage", SECRET)
        given = iter(range(1, 100))
        self.forms: list[tuple[str | None, str]] = []

        def behave(request: Request) -> Reply:
            if request.target == "/token":
                self.forms.append((request.headers.get("authorization"), request.body.decode()))
                return Reply(200, json.dumps({"access_token": f"t{next(given)}", **token}).encode(), stored=False)
            return self.answer(request)

        receiver.behave = behave
        return {"type": "oauth2", "clientId": "waybill", "clientSecret": {"secret": "lineage"}, "scope": "lineage"}

    def answer(self, request: Request) -> Reply:
        """Take what comes with the latest token."""
        return Reply(201 if request.headers["authorization"] == f"Bearer t{len(self.forms)}" else 401)

    def shipped(self, receiver: Receiver, auth: dict[str, Any], parcels: list[Delivery], **properties: Any) -> Shipped:
        async def run() -> Shipped:
            async with receiver.listening():
                full = {**auth, "tokenEndpoint": f"{receiver.url}/token"}
                return await ship(receiver.url, parcels, auth=full, **properties)

        return asyncio.run(run())

    @pytest.mark.parametrize("method", ["basic", "post"])
    def test_a_token_is_asked_for_once(self, method: str) -> None:
        receiver = Receiver()
        auth = {**self.endpoint(receiver, expires_in=3600), "clientAuthMethod": method}
        assert self.shipped(receiver, auth, deliveries(6, jobs=3)).counts == (6, 0, 0)
        basic = f"Basic {base64.b64encode(f'waybill:{SECRET}'.encode()).decode()}"
        form = "grant_type=client_credentials&scope=lineage"
        expected = (basic, form) if method == "basic" else (None, f"{form}&client_id=waybill&client_secret={SECRET}")
        assert self.forms == [expected]

    @pytest.mark.parametrize("lives", [0.4, "0.4"])
    def test_a_token_is_replaced_before_it_ends(self, lives: Any) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver, expires_in=lives)
        self.answer = lambda request: Reply(201, wait=0.25)  # type: ignore[method-assign]  # noqa: ARG005
        assert self.shipped(receiver, auth, deliveries(3)).counts == (3, 0, 0)
        assert len(self.forms) == 3

    @pytest.mark.parametrize("lives", [0, -5, 3599.5, "3600", "²", "soon", None, True, [], 10**400])
    def test_whatever_it_says_of_its_end_a_token_is_not_asked_for_per_event(self, lives: Any) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver, expires_in=lives)
        assert self.shipped(receiver, auth, deliveries(6, jobs=3)).counts == (6, 0, 0)
        assert len(self.forms) == 1

    def test_half_an_answer_with_a_token_leaves_its_connection_to_the_next_try(self) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver)
        answers = iter([Reply(200, b'{"access_token": "t1"}', cut=50, stored=False)])
        whole = receiver.behave
        receiver.behave = lambda request: next(answers, None) or whole(request)
        shipped = self.shipped(receiver, auth, deliveries(2), maxInFlight=1)
        assert (shipped.error, shipped.counts) == (None, (2, 0, 0))
        assert len(self.forms) == 1

    def test_an_endpoint_that_does_not_answer_is_not_waited_for_longer_than_the_run(self) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver)
        receiver.behave = lambda _: Reply(200, b"{}", stored=False, wait=5)
        began = time.monotonic()
        shipped = self.shipped(receiver, auth, deliveries(3), seconds=0.5)
        assert time.monotonic() - began < 2
        assert isinstance(shipped.error, OutOfTime)
        assert str(shipped.error) == (
            f"the run's time is over, and the token endpoint {receiver.url}/token gave no token by then"
        )

    def test_an_endpoint_in_trouble_is_asked_again_by_one_of_those_that_wait(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tokens, "_TRIES", 2)
        receiver = Receiver()
        auth = self.endpoint(receiver, expires_in=0.2)
        token = receiver.behave

        def behave(request: Request) -> Reply:
            if request.target == "/token" and self.forms:
                self.forms.append((None, ""))
                return Reply(500, stored=False)
            return token(request)

        self.answer = lambda request: Reply(201, wait=0.2)  # type: ignore[method-assign]  # noqa: ARG005
        receiver.behave = behave
        shipped = self.shipped(receiver, auth, deliveries(12, jobs=6))
        assert str(shipped.error) == f"the token endpoint {receiver.url}/token gives no token: HTTP 500"
        assert len(self.forms) == 1 + 2

    def test_the_headers_of_the_backend_are_not_for_the_token_endpoint(self) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver)
        assert self.shipped(receiver, auth, [delivery()], headers={"X-Tenant": "one"}).counts == (1, 0, 0)
        assert [request.headers.get("x-tenant") for request in receiver.requests] == [None, "one"]

    def test_a_token_that_is_refused_is_replaced_once(self) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver)
        self.answer = lambda request: Reply(201 if request.headers["authorization"] == "Bearer t2" else 401)  # type: ignore[method-assign]
        assert self.shipped(receiver, auth, deliveries(3)).counts == (3, 0, 0)
        assert len(self.forms) == 2

    def test_an_endpoint_that_refuses_the_client_stops_the_exporter(self) -> None:
        receiver = Receiver()
        auth = self.endpoint(receiver)
        receiver.behave = lambda _: Reply(401, b'{"error": "invalid_client"}', stored=False)
        shipped = self.shipped(receiver, auth, deliveries(3))
        assert str(shipped.error) == (
            f"the token endpoint {receiver.url}/token gives no token: HTTP 401, invalid_client; "
            "look at clientId, clientSecret and scope"
        )


class TestSecrets:
    def test_a_secret_that_is_gone_when_it_is_read_again_stops_the_exporter(self) -> None:
        keep_secret("lineage", "old")

        def behave(_: Request) -> Reply:
            boto3.client("secretsmanager", region_name="us-east-1").delete_secret(
                SecretId="lineage", ForceDeleteWithoutRecovery=True
            )
            return Reply(401)

        shipped = shipped_to(Receiver(behave), deliveries(3), {"type": "bearer", "token": {"secret": "lineage"}})
        assert str(shipped.error).startswith("secret lineage cannot be read: ")
        assert shipped.letters == []

    def test_a_secret_that_does_not_exist_stops_the_exporter_before_anything_is_sent(self) -> None:
        receiver = Receiver()
        shipped = shipped_to(receiver, [delivery()], {"type": "bearer", "token": {"secret": "nowhere"}})
        assert str(shipped.error).startswith("secret nowhere cannot be read: An error occurred (ResourceNotFound")
        assert receiver.requests == []

    def test_a_parameter_that_does_not_exist_stops_the_exporter_before_anything_is_sent(self) -> None:
        receiver = Receiver()
        shipped = shipped_to(receiver, [delivery()], {"type": "bearer", "token": {"parameter": "/nowhere"}})
        assert str(shipped.error).startswith("parameter /nowhere cannot be read: ")
        assert receiver.requests == []

    def test_a_missing_field_is_named_and_the_secret_is_not_shown(self) -> None:
        keep_secret("lineage", json.dumps({"token": SECRET}))
        token = {"secret": "lineage", "field": "key"}
        shipped = shipped_to(Receiver(), [delivery()], {"type": "bearer", "token": token})
        assert str(shipped.error) == "secret lineage is no JSON object with a text under 'key'"

    def test_a_secret_that_was_put_as_bytes_is_sent_as_its_text(self) -> None:
        boto3.client("secretsmanager").create_secret(Name="lineage", SecretBinary=SECRET.encode())
        headers = sent_with({"type": "bearer", "token": {"secret": "lineage"}})
        assert headers["authorization"] == f"Bearer {SECRET}"

    def test_bytes_that_are_no_text_are_not_shown(self) -> None:
        boto3.client("secretsmanager").create_secret(Name="lineage", SecretBinary=b"\xff\xfe")
        shipped = shipped_to(Receiver(), [delivery()], {"type": "bearer", "token": {"secret": "lineage"}})
        assert str(shipped.error) == "secret lineage holds bytes that are no text"

    def test_a_secret_that_no_header_can_hold_is_not_shown(self) -> None:
        keep_secret("lineage", f"{SECRET}\nX-Other: 1")
        shipped = shipped_to(Receiver(), [delivery()], {"type": "bearer", "token": {"secret": "lineage"}})
        assert str(shipped.error) == "secret lineage is empty or holds a character that no header may hold"

    @pytest.mark.parametrize("status", [201, 401, 422, 500])
    def test_no_secret_is_ever_logged_or_kept(self, status: int, caplog: pytest.LogCaptureFixture) -> None:
        keep_secret("lineage", SECRET)
        caplog.set_level(logging.DEBUG, logger="waybill")
        receiver = Receiver(lambda _: Reply(status))
        auth = {"type": "bearer", "token": {"secret": "lineage"}}
        shipped = shipped_to(receiver, [delivery()], auth, timeout={"giveUp": 0.2})
        told = [caplog.text, repr(shipped.error), repr(shipped.letters), repr(shipped.outputs)]
        assert SECRET not in "\n".join(told)

    def test_an_answer_that_repeats_the_secret_is_kept_without_it(self) -> None:
        keep_secret("lineage", SECRET)
        receiver = Receiver(lambda request: Reply(400, f"bad: {request.headers['authorization']}".encode()))
        shipped = shipped_to(receiver, [delivery()], {"type": "bearer", "token": {"secret": "lineage"}})
        assert [letter.answer for letter in shipped.letters] == ["bad: Bearer ***"]

    def test_a_key_of_several_words_is_struck_out_whole(self) -> None:
        keep_secret("lineage", "alpha beta omega")
        receiver = Receiver(lambda request: Reply(400, f"bad: {request.headers['x-key']}, omega".encode()))
        auth = {"type": "apiKey", "apiKey": {"secret": "lineage"}, "header": "X-Key"}
        shipped = shipped_to(receiver, [delivery()], auth)
        assert [letter.answer for letter in shipped.letters] == ["bad: ***, omega"]

    def test_a_redirect_that_repeats_the_secret_is_told_without_it(self) -> None:
        keep_secret("lineage", SECRET)
        receiver = Receiver(lambda _: Reply(302, headers={"location": f"http://login/?token={SECRET}"}))
        shipped = shipped_to(receiver, [delivery()], {"type": "bearer", "token": {"secret": "lineage"}})
        assert str(shipped.error).startswith("HTTP 302 to http://login/?token=***: it redirects")

    def test_a_secret_is_read_once_for_many_runs(self) -> None:
        keep_secret("lineage", "old")
        auth = {"type": "bearer", "token": {"secret": "lineage"}}
        shipped_to(Receiver(), [delivery()], auth)
        change_secret("lineage", "new")
        receiver = Receiver()
        shipped_to(receiver, [delivery()], auth)
        assert receiver.requests[0].headers["authorization"] == "Bearer old"
