"""The use cases of the catalog API: finding, changing and locking assets, and the graph of their lineage."""
