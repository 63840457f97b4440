"""The package's programs as compiled for an H100 and a TPU v5e, reported by the compilers.

No chip is needed: both compilers build for devices that are described, not present. Read `chips`
(the devices), `hlo` and `traffic` (what is counted in a compiled module), `program`, `programs` and
`sharded_programs` (the compiled programs, for one device and for eight), `budgets` (limits of the
counts), then `__main__`.
"""
