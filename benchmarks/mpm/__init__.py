"""The continuum benchmark's work, and its programs in Taichi and Warp."""
