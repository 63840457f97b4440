"""What would have to break a promise: kills, flips, full disks, mutants, wheels, licences.

Run by `make trust` before a release, not by `make test`. Read in the order `__main__` (the driver),
`record` (what is kept of each part), then the part that you want: each is a module with `measure`.
"""
