"""Waybill: records what each job reads and writes, and ships the lineage."""

__version__ = "0.1.0"

PRODUCER = f"https://waybill.dev/releases/{__version__}"
"""`producer` of every OpenLineage event and facet that Waybill makes."""
