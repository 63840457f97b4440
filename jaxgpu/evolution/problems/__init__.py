"""Test problems, checked against independent implementations."""
