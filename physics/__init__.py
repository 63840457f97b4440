"""Simulators: matter, bodies and stars."""
