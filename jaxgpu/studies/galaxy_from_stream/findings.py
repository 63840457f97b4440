from jaxgpu.report import Report
def written(options, spec, done):
    return Report("x", "y.", timing={"all mocks": done.timing}, seed=options.seed)
