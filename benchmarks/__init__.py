"""Measurements whose figures are compared from one day to the next (DESIGN 9)."""
