"""The work of the continuum benchmark, and its programs in Taichi and Warp."""
