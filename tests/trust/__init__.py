"""Tests of the promised reliability: kills, corrupt files, full disks, mutants, wheels, licences.

Run by `make trust` before a release, not by `make test`. Read in the order `__main__` (the driver),
`record` (the stored results), then any part: each is a module with `measure`.
"""
