"""The engine: from a position in the log to exporters. It knows nothing of HTTP or S3."""
