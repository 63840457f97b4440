"""Environments, each registered under its name when this package is imported."""
