"""Pictures and films of tasks.

`film` draws the episodes of any environment that has a method `scene`; `stage` (classic tasks) and
`arms` (surgical ones) say for the built-in tasks what stands where.
"""
