"""Compares what manifests and files say with the log: missing, double, damaged, orphans."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from waybill.clock import iso
from waybill.errors import ExporterStopped
from waybill.export.files.manifest import DamagedManifestError
from waybill.export.files.manifests import name_of
from waybill.export.files.reading import fault_of
from waybill.ids import uuid7_millis

if TYPE_CHECKING:
    from collections.abc import Iterable

    from waybill.export.files.destination import Destination
    from waybill.export.files.manifest import Manifest
    from waybill.export.files.manifests import Manifests
    from waybill.model.event import LineageEvent

IN_WORK = timedelta(minutes=20)
"""A file younger than this may belong to a run that has not committed it yet; a run lasts 15 minutes at most."""


@dataclass
class Findings:
    """What a check found.

    Attributes:
        compared: whether the log was there to compare with.
        lines: events in all files.
        unread: manifests that cannot be read; what they name is not known.
        older: events of the log from before the first event of all files: their files expired, or lie elsewhere.
        missing: ids of events that are in the log, behind the position, and in no file.
        double: ids of events, or of OpenLineage's runs, that stand in files more often than in the log.
        damaged: what is wrong with a file or manifest, by its address.
        orphans: addresses of files that no manifest names.
        rejected: ids of events that no line could be made of, as manifests say.
        tagged: orphans that were given the tag with which they expire.
        not_tagged: why the others were not, where that was asked for.
    """

    compared: bool = True
    manifests: int = 0
    files: int = 0
    lines: int = 0
    unread: int = 0
    older: int = 0
    missing: list[str] = field(default_factory=list)
    double: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    tagged: int = 0
    not_tagged: str | None = None

    @property
    def sound(self) -> bool:
        """Whether every event stands in exactly one file that is whole; orphans do no harm, and expire."""
        return not (self.missing or self.double or self.damaged)


def verify(
    destination: Destination, manifests: Manifests, log: Iterable[LineageEvent] | None, now: datetime
) -> Findings:
    """Check the files of one exporter.

    Args:
        destination: the bucket.
        manifests: of the exporter.
        log: the events that it has behind it; None where that cannot be told, then nothing is reported as missing.
        now: files younger than `IN_WORK` are no orphans.

    Raises:
        ExporterStopped: S3 does not answer.
    """
    check = _Check(destination, manifests)
    written = manifests.look()
    for key in written.manifests:
        check.manifest(key)
    check.orphans(written.files, now - IN_WORK)
    if log is not None:
        check.compare(log)
    else:
        check.found.compared = False
        check.compare_files()
    return check.found


def expire_orphans(destination: Destination, found: Findings) -> None:
    """Give orphans the tag with which they expire, unless it is in doubt that they are orphans."""
    if not found.orphans:
        return
    if found.unread:
        found.not_tagged = "what a manifest names that cannot be read is not known; restore an older version of it"
    elif found.missing:
        found.not_tagged = "they may hold the events that are missing, and their manifest be lost"
    elif not destination.own:
        found.not_tagged = "the bucket is not the stack's, and nothing there removes what is tagged; delete them there"
    else:
        try:
            for uri in found.orphans:
                destination.tag(destination.key(uri))
                found.tagged += 1
        except ExporterStopped as error:
            found.not_tagged = str(error)


class _Check:
    def __init__(self, destination: Destination, manifests: Manifests) -> None:
        self.found = Findings()
        self._to = destination
        self._manifests = manifests
        self._named: set[str] = set()
        self._doubtful: list[str] = []
        self._first_key = ""
        self._events: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()

    def manifest(self, key: str) -> None:
        """Read a manifest and the files that it names."""
        try:
            manifest = self._manifests.read(key)
        except DamagedManifestError as error:
            self.found.unread += 1
            self.found.damaged[self._to.uri(key)] = str(error)
            self._doubtful.append(self._manifests.files_of(key))
            return
        self.found.manifests += 1
        self.found.rejected += [rejection.id for rejection in manifest.rejected]
        self._files(manifest)

    def _files(self, manifest: Manifest) -> None:
        counts = self._runs if manifest.content == "openlineage" else self._events
        for file in manifest.files:
            self._named.add(name_of(file.uri))
            self._first_key = min(self._first_key or file.first, file.first)
            self.found.files += 1
            if fault := fault_of(self._to, manifest, file, counts):
                self.found.damaged[file.uri] = fault
        self.found.lines = self._events.total() + self._runs.total()

    def orphans(self, files: Iterable[tuple[str, datetime]], before: datetime) -> None:
        """Find files that no manifest names. Names are compared, for no two files ever have the same."""
        for key, modified in files:
            name = name_of(key)
            doubtful = name in self._named or any(part in name for part in self._doubtful)
            if not doubtful and modified < before:
                self.found.orphans.append(self._to.uri(key))

    def compare(self, log: Iterable[LineageEvent]) -> None:
        """Compare what stands in files with what stands in the log; what has left the log is in one file at most.

        A line of OpenLineage has the id of its run, which several events may share: it stands for any of them.
        """
        first = self._first_created()
        rejected = set(self.found.rejected)
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        most: Counter[str] = Counter()
        for event in log:
            run = self._run_of(event)
            most[run] += event.id not in self._events
            if event.id in self._events:
                continue
            if event.created < first:
                self.found.older += run not in self._runs
            elif event.id not in rejected:
                wanted[run].append(event.id)
        self.found.missing = sorted(id_ for run, ids in wanted.items() if self._runs[run] < len(ids) for id_ in ids)
        double = {run for run, count in self._runs.items() if run in most and count > most[run]}
        self.found.double = sorted(double | self._double_events())

    def compare_files(self) -> None:
        """Find events that stand in files twice, without the log; a run's id says nothing, for its events share it."""
        self.found.double = sorted(self._double_events())

    def _double_events(self) -> set[str]:
        return {id_ for id_, count in self._events.items() if count > 1}

    def _first_created(self) -> str:
        """Return the recording time of the first event of all files; an empty text where there is none."""
        if not self._first_key:
            return ""
        return iso(datetime.fromtimestamp(uuid7_millis(self._first_key) / 1000, UTC))

    def _run_of(self, event: LineageEvent) -> str:
        """Return what lines of the event have for an id in files of OpenLineage."""
        if not self._runs:
            return event.id
        from waybill.export.openlineage.runs import run_id

        return run_id(event, "keep")
