"""The use case of the recorder: a task run report becomes lineage events and changes of the catalog."""
