"""Environments; importing this package registers each under its name."""
