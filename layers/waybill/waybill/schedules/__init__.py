"""Flows on schedule: the triggers of flow documents as EventBridge rules."""
