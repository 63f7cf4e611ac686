"""CatalogFunction: answers the catalog's HTTP API (DESIGN 4)."""

from __future__ import annotations

from waybill.catalog.api import handle

__all__ = ["handle"]
