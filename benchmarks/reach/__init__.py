"""What the programs of the package become on an H100 and on a TPU v5e, told by their compilers.

No chip is needed: both compilers build for devices that are described, not present. Read `chips`
(the devices), `hlo` (what is counted in a compiled module), `programs` (what is compiled),
`budgets` (what a count is held to), then `__main__`.
"""
