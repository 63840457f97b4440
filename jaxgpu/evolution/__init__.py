"""Tensorized evolutionary optimisation, above all multi- and many-objective."""
