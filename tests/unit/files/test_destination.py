"""What S3's refusals mean, in words that say what to do."""

from __future__ import annotations

import boto3
import pytest
from botocore.stub import Stubber

from waybill.errors import ExporterStopped
from waybill.export.files.destination import Destination

DENIED = "no permission; let the role of the function write there (and the bucket's owner let it in)"


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        ("NoSuchBucket", "", "the bucket does not exist; make it, or correct `bucket`"),
        ("AccessDenied", "Access Denied", DENIED),
        (
            "AccessDenied",
            "Not authorized to perform: kms:GenerateDataKey",
            f"{DENIED}: Not authorized to perform: kms:GenerateDataKey",
        ),
        ("KMS.DisabledException", "", "the KMS key is disabled"),
        ("SlowDown", "Please reduce your request rate.", "SlowDown: Please reduce your request rate."),
    ],
)
def test_a_refusal_says_what_was_tried_where_and_what_to_do(code: str, message: str, said: str) -> None:
    s3 = boto3.client("s3", region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b")  # noqa: S106
    with Stubber(s3) as stubber:
        stubber.add_client_error("put_object", code, message)
        destination = Destination(s3, "company-lineage", own=False)

        with pytest.raises(ExporterStopped) as stopped, destination.told("write"):
            s3.put_object(Bucket="company-lineage", Key="key", Body=b"")

    assert str(stopped.value) == f"cannot write in s3://company-lineage: {said}"
