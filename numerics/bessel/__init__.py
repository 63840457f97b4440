"""Bessel."""
