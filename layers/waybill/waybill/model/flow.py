"""The flow document: which lineage goes where (DESIGN 4). Accepts the reference product's flows as they stand."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StrictInt, ValidationError

from waybill.errors import InvalidFlow
from waybill.export.files.config import BucketName, FileAssetExporter, Key
from waybill.export.openlineage.config import NESTED_MODELS, OpenLineageAssetExporter
from waybill.faults import fault_lines
from waybill.model.fields import Document, Duration, KeyPart, Namespace, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BARE_TASKS_ID = "waybill"
"""Flow id and namespace of a document that is only a list of tasks."""

_CRON = re.compile(r"@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)|\S+(?: +\S+){4,5}")
_URIS = re.compile(r"\{\{\s*outputs\.([\w.-]+)\.outputs\.([\w-]+)\.uris\s*\}\}")
_SUBSCRIPT = re.compile(r"""\[(?:'([^']+)'|"([^"]+)")\]""")  # outputs['ship.it'], for an id that is no plain word

AnyExporter = Annotated[OpenLineageAssetExporter | FileAssetExporter, Field(discriminator="type")]


class AssetShipper(Document):
    """Sends the lineage events recorded since its last run to one or more exporters."""

    id: KeyPart
    type: Literal["AssetShipper"]
    description: str | None = None
    asset_exporters: Annotated[tuple[AnyExporter, ...], Field(min_length=1)]
    flow_namespace: Text | None = None
    flow_id: Text | None = None
    task_id: Text | None = None
    asset_namespace: Text | None = None
    asset_types: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    lookback_period: Duration = timedelta(days=1)
    offset_key: KeyPart = "AssetShipper-state"
    delete: StrictBool = False
    force: StrictBool = False


class Upload(Document):
    """An S3 upload of what a file exporter wrote: it says where that exporter writes, and does nothing itself."""

    model_config = ConfigDict(alias_generator=None)

    id: KeyPart
    type: Literal["Upload"]
    bucket: BucketName
    key: Key
    source: Text = Field(alias="from")
    description: str | None = None
    region: Text | None = None
    access_key_id: str | None = Field(default=None, alias="accessKeyId", repr=False)
    secret_key_id: str | None = Field(default=None, alias="secretKeyId", repr=False)
    session_token: str | None = Field(default=None, alias="sessionToken", repr=False)

    @property
    def credentials(self) -> tuple[str, ...]:
        """The names of the credentials that the task gives; Waybill uses the function's own role."""
        given = {
            "accessKeyId": self.access_key_id,
            "secretKeyId": self.secret_key_id,
            "sessionToken": self.session_token,
        }
        return tuple(name for name, value in given.items() if value is not None)


def _cron(value: str) -> str:
    if not _CRON.fullmatch(value):
        raise ValueError("must be a cron expression of five fields, or one such as @hourly or @daily")
    return value


class Schedule(Document):
    """When a flow runs. Only `waybill schedules` reads it: a stack's own schedules are its EventBridge rules."""

    model_config = ConfigDict(extra="ignore")

    id: KeyPart
    type: Literal["Schedule"]
    cron: Annotated[str, AfterValidator(_cron)]
    timezone: Text | None = None
    disabled: StrictBool = False


AnyTask = Annotated[AssetShipper | Upload, Field(discriminator="type")]


class Flow(Document):
    """A flow document, validated.

    Attributes:
        continuation: how many runs before this one ran out of time (0: none did).
    """

    id: KeyPart
    namespace: Namespace
    tasks: Annotated[tuple[AnyTask, ...], Field(min_length=1)]
    description: str | None = None
    labels: Any = None
    triggers: tuple[Schedule, ...] = ()
    continuation: Annotated[StrictInt, Field(ge=0)] = 0

    @property
    def shippers(self) -> tuple[AssetShipper, ...]:
        """The tasks that do something, in order."""
        return tuple(task for task in self.tasks if isinstance(task, AssetShipper))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was accepted but has no effect, one line each."""
        return tuple(
            f"tasks.{task.id}: {', '.join(task.credentials)} ignored; the function's own role writes"
            for task in self.tasks
            if isinstance(task, Upload) and task.credentials
        )


def parse_flow(document: Any) -> Flow:
    """Validate a flow document, or a bare list of tasks.

    Raises:
        InvalidFlow: naming every fault by its path.
    """
    if isinstance(document, list):
        document = {"id": BARE_TASKS_ID, "namespace": BARE_TASKS_ID, "tasks": document}
    short, type_faults = _with_short_types(document)
    faults: list[str] = list(type_faults)
    try:
        flow = Flow.model_validate(short)
    except ValidationError as error:
        unknown_types = {line.split(":")[0] for line in type_faults}
        faults += [line for line in fault_lines(error, _known()) if line.split(":")[0] not in unknown_types]
        raise InvalidFlow(faults) from None
    faults += _doubles(flow)
    uploads, upload_faults = _destinations(flow)
    faults += upload_faults
    if faults:
        raise InvalidFlow(faults)
    return _with_destinations(flow, uploads)


_TASK_TYPES = ("AssetShipper", "Upload")
_EXPORTER_TYPES = ("OpenLineageAssetExporter", "FileAssetExporter")
_TRIGGER_TYPES = ("Schedule",)


def _with_short_types(document: Any) -> tuple[Any, list[str]]:
    """Cut every `type` down to its last part, and name those that do not exist."""
    faults: list[str] = []

    def short(thing: Any, path: str, known: Sequence[str]) -> Any:
        if not isinstance(thing, dict) or not isinstance(thing.get("type"), str):
            return thing
        name = thing["type"].rsplit(".", 1)[-1]
        if name not in known:
            faults.append(f"{path}.type: {thing['type']!r} is not known; use {' or '.join(known)}")
        result = {**thing, "type": name}
        if isinstance(thing.get("assetExporters"), list):
            result["assetExporters"] = [
                short(exporter, f"{path}.assetExporters[{position}]", _EXPORTER_TYPES)
                for position, exporter in enumerate(thing["assetExporters"])
            ]
        return result

    def each(name: str, known: Sequence[str]) -> Any:
        things = document.get(name)
        if not isinstance(things, list):
            return things
        return [short(thing, f"{name}[{position}]", known) for position, thing in enumerate(things)]

    if not isinstance(document, dict):
        return document, faults
    replaced = {"tasks": each("tasks", _TASK_TYPES), "triggers": each("triggers", _TRIGGER_TYPES)}
    return {**document, **{name: value for name, value in replaced.items() if name in document}}, faults


def _known() -> dict[str, Sequence[str]]:
    def names(*models: type[Document]) -> list[str]:
        return sorted({field.alias or name for model in models for name, field in model.model_fields.items()})

    exporters, tasks = (get_args(get_args(union)[0]) for union in (AnyExporter, AnyTask))
    inner = {f"tasks[].assetExporters[].{path}": names(*models) for path, models in NESTED_MODELS.items()}
    return {
        **inner,
        "": names(Flow),
        **{f"tasks[]:{model.__name__}": names(model) for model in tasks},
        **{f"tasks[].assetExporters[]:{model.__name__}": names(model) for model in exporters},
    }


def _doubles(flow: Flow) -> Iterator[str]:
    """Name every id that is used twice where it must be unique."""
    yield from _twice([(task.id, f"tasks[{n}].id") for n, task in enumerate(flow.tasks)])
    for n, task in enumerate(flow.tasks):
        if isinstance(task, AssetShipper):
            path = f"tasks[{n}].assetExporters"
            yield from _twice([(exporter.id, f"{path}[{m}].id") for m, exporter in enumerate(task.asset_exporters)])


def _twice(ids: Sequence[tuple[str, str]]) -> Iterator[str]:
    first: dict[str, str] = {}
    for value, path in ids:
        if value in first:
            yield f"{path}: {value!r} is the id of {first[value].removesuffix('.id')} already; give each its own"
        first.setdefault(value, path)


def _destinations(flow: Flow) -> tuple[dict[tuple[str, str], Upload], list[str]]:
    """Find for each upload the file exporter whose files it uploads."""
    files = {
        (task.id, exporter.id): exporter
        for task in flow.shippers
        for exporter in task.asset_exporters
        if isinstance(exporter, FileAssetExporter)
    }
    found: dict[tuple[str, str], Upload] = {}
    faults: list[str] = []
    for position, task in enumerate(flow.tasks):
        if isinstance(task, Upload):
            match = _URIS.fullmatch(_SUBSCRIPT.sub(r".\1\2", task.source.strip()))
            names = (match[1], match[2]) if match else ("", "")
            fault = ""
            if names not in files:
                fault = "must be {{ outputs.<task>.outputs.<exporter>.uris }} of a file exporter of this flow"
            elif names in found:
                fault = f"task {found[names].id} uploads these already; leave one out"
            elif files[names].model_fields_set & {"bucket", "key"}:
                fault = "the exporter has bucket or key of its own; say it in one place"
            if fault:
                faults.append(f"tasks[{position}].from: {fault}")
            else:
                found[names] = task
    return found, faults


def _with_destinations(flow: Flow, uploads: dict[tuple[str, str], Upload]) -> Flow:
    """Move each upload's bucket and key into its file exporter."""

    def settled(task: AnyTask) -> AnyTask:
        if not isinstance(task, AssetShipper):
            return task
        exporters = tuple(
            exporter.model_copy(update={"bucket": upload.bucket, "key": upload.key})
            if (upload := uploads.get((task.id, exporter.id))) and isinstance(exporter, FileAssetExporter)
            else exporter
            for exporter in task.asset_exporters
        )
        return task.model_copy(update={"asset_exporters": exporters})

    return flow.model_copy(update={"tasks": tuple(settled(task) for task in flow.tasks)})
