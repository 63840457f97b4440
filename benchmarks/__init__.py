"""Ours and the peers on the same work, in one run: `python -m benchmarks [name ...]`."""
