"""Planets."""
