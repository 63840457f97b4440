"""Surgical."""
