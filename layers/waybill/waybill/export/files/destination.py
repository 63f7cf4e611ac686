"""The bucket that an exporter writes to, and what S3's refusals mean for it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waybill.errors import ExporterStopped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from botocore.exceptions import BotoCoreError, ClientError
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import TagTypeDef

UNCOMMITTED: TagTypeDef = {"Key": "waybill", "Value": "uncommitted"}
"""The tag of a file that no manifest names (yet). The lifecycle of the stack's bucket lets such files expire."""

_ADVICE = {
    "NoSuchBucket": "the bucket does not exist; make it, or correct `bucket`",
    "AccessDenied": "no permission; let the role of the function write there (and the bucket's owner let it in)",
    "AllAccessDisabled": "no permission; the bucket is disabled",
    "InvalidBucketName": "the bucket cannot have this name; correct `bucket`",
    "PermanentRedirect": "the bucket lies in another region than it says",
    "KMS.NotFoundException": "the KMS key does not exist; correct `kmsKey`",
    "KMS.DisabledException": "the KMS key is disabled",
    "KMS.AccessDeniedException": "no permission to use the KMS key",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """A bucket.

    Attributes:
        own: whether it is the bucket of the stack, whose lifecycle removes files tagged as uncommitted.
    """

    s3: S3Client
    bucket: str
    own: bool
    kms_key: str | None = None

    @property
    def encryption(self) -> dict[str, Any]:
        """What every writing call says about encryption."""
        return {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self.kms_key} if self.kms_key else {}

    def uri(self, key: str) -> str:
        """Return the address of an object."""
        return f"s3://{self.bucket}/{key}"

    def key(self, uri: str) -> str:
        """Return the key of an object of this bucket from its address."""
        return uri.removeprefix(f"s3://{self.bucket}/")

    def keep(self, keys: Sequence[str]) -> None:
        """Take files out of what expires, just before a manifest names them.

        Raises:
            ExporterStopped: S3 refused or did not answer. They expire, as far as S3 lets them.
        """
        for count, key in enumerate(keys if self.own else (), 1):
            try:
                with self.told("untag a file"):
                    self.s3.delete_object_tagging(Bucket=self.bucket, Key=key)
            except ExporterStopped:
                self.give_up(keys[:count])
                raise

    def give_up(self, keys: Sequence[str]) -> None:
        """Let files expire that no manifest will name. Never raises: `waybill files verify` finds them too.

        Where S3 does not take the first, it does not take the others, and a run has no time for asking.
        """
        with suppress(ExporterStopped):
            for key in keys if self.own else ():
                self.tag(key)

    def tag(self, key: str) -> None:
        """Let a file of the stack's bucket expire.

        Raises:
            ExporterStopped: S3 refused or did not answer.
        """
        with self.told("tag a file"):
            self.s3.put_object_tagging(Bucket=self.bucket, Key=key, Tagging={"TagSet": [UNCOMMITTED]})

    @contextmanager
    def told(self, action: str) -> Iterator[None]:
        """Turn an error of S3 into one that says what was tried, where, why not, and what to do.

        Raises:
            ExporterStopped: S3 refused or did not answer.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (ClientError, BotoCoreError) as error:
            reason = _advice(error) or refusal(error)
            raise ExporterStopped(f"cannot {action} in s3://{self.bucket}: {reason}") from error


def refusal(error: ClientError | BotoCoreError) -> str:
    """Say why S3 did not do what was asked for."""
    code, message = error_code(error), _said(error, "Message")
    if not code:
        return str(error)
    return "it is not there" if code == "NoSuchKey" else f"{code}: {message}".rstrip(": ")


def was_refused(error: BaseException | None) -> bool:
    """Tell whether S3 has answered that it did not do it, to the one request that there was: an answer may get lost."""
    from botocore.exceptions import ClientError

    if not isinstance(error, ClientError):
        return False
    about = error.response.get("ResponseMetadata", {})
    return about.get("HTTPStatusCode") in range(400, 500) and about.get("RetryAttempts", 0) == 0


def _advice(error: ClientError | BotoCoreError) -> str | None:
    """Return what to do; S3 denies access in one word, and says in its message that it is the key's, or to whom."""
    advice, message = _ADVICE.get(error_code(error)), _said(error, "Message")
    return f"{advice}: {message}" if advice and "kms:" in message else advice


def error_code(error: ClientError | BotoCoreError) -> str:
    """Return the code of an error of S3; an empty text where S3 did not answer."""
    return _said(error, "Code")


def _said(error: ClientError | BotoCoreError, name: str) -> str:
    answer = getattr(error, "response", None)
    return str(answer.get("Error", {}).get(name, "")) if isinstance(answer, dict) else ""
