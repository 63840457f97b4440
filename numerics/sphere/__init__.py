"""Sphere."""
