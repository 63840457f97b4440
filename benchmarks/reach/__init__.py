"""What the programs of the package become on an H100 and on a TPU v5e, told by their compilers.

No chip is needed: both compilers build for devices that are described, not present. Read `chips`
(the devices), `hlo` and `traffic` (what is counted in a compiled module), `program`, `programs` and
`spread` (what is compiled, for one device and for eight), `budgets` (what a count is held to), then
`__main__`.
"""
