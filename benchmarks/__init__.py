"""Time jaxgpu and other packages on the same work in one run: `python -m benchmarks [name ...]`."""
