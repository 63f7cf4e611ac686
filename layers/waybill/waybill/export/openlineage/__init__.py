"""Posts lineage to OpenLineage backends."""
