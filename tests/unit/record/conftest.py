from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from moto import mock_aws

from tests.support.stack_in_memory import StackInMemory, stack_in_memory
from waybill.store import aws

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def _moto() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.delenv("AWS_ENDPOINT_URL", raising=False)
        with mock_aws():
            aws.client.cache_clear()
            aws.single_try_client.cache_clear()
            yield
    aws.client.cache_clear()
    aws.single_try_client.cache_clear()


@pytest.fixture
def stack(_moto: None) -> StackInMemory:
    return stack_in_memory()
