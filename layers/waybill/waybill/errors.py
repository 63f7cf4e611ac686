"""The errors of Waybill.

WaybillError
├── InvalidDocument        what a user handed in is wrong; nothing was done
│   ├── InvalidReport      a task run report
│   ├── InvalidFlow        a flow document
│   └── InvalidRequest     a request to the catalog API
├── ConfigurationFault     the function's own environment lacks something
├── AssetRefused           one asset could not be written
│   ├── AssetLocked        somebody else holds its lock
│   └── NamespaceForbidden its namespace does not admit the writer
├── AssetNotFound          no living asset has the id
├── AssetExists            an asset with the id is there already
├── Conflict               somebody else was faster, again and again
├── StoreBusy              a table took no more, again and again
├── InvalidOffset          what stands where a position should is none
├── LeaseLost              another invocation took over the lease
├── ExporterStopped        an exporter could not go on; its position is good
│   └── OutOfTime          the run's time is over
└── ExportFailed           a task of a flow failed; names every exporter that stopped
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class WaybillError(Exception):
    """The base of every error that Waybill raises on purpose."""


class InvalidDocument(WaybillError):
    """A document was refused whole.

    Args:
        faults: one line per fault, `<path>: <what is wrong and what to do>`.
    """

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(self.faults))


class InvalidReport(InvalidDocument):
    """A task run report was refused; nothing was written."""


class InvalidFlow(InvalidDocument):
    """A flow document was refused; nothing was sent."""


class InvalidRequest(InvalidDocument):
    """A request to the catalog API was refused; nothing was changed."""


class ConfigurationFault(WaybillError):
    """The environment of the function lacks a name or holds a value that cannot be used."""


class AssetRefused(WaybillError):
    """An asset was not written, and stays as it was. The message is the reason that the answer gives."""


class AssetLocked(AssetRefused):
    """Somebody else holds the asset's lock. The message says who, and until when."""


class NamespaceForbidden(AssetRefused):
    """The asset's namespace does not admit the writer."""


class AssetNotFound(WaybillError):
    """No living asset has this id."""


class AssetExists(WaybillError):
    """An asset with this id is there already."""


class Conflict(WaybillError):
    """A conditional write lost against others too many times."""


class InvalidOffset(WaybillError):
    """What is stored as a position, or as an offset, cannot be read. The message names it and how to reset it."""


class StoreBusy(WaybillError):
    """A table left work undone too many times."""


class LeaseLost(WaybillError):
    """Another invocation holds the lease now; this one must write nothing more."""


class ExporterStopped(WaybillError):
    """An exporter could not go on. What it delivered before is kept; the message says why and what to do."""


class OutOfTime(ExporterStopped):
    """The run's time is over. The event is not answered; the next run goes on. This is no failure."""


class ExportFailed(WaybillError):
    """One or more tasks of a flow failed. The message names each exporter, its reason and what was delivered before.

    Attributes:
        again: whether the run is to be continued all the same: others ran out of time, and moved.
    """

    again = False
