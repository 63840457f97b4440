# make demo   install everything into .venv, run the first studies, print the path of the report
# make test   install everything into .venv, run the tests
# PY=python3.13 picks another interpreter, EXTRA=cuda13 adds the plugin of an accelerator
export PYTHONDONTWRITEBYTECODE =
export PIP_DISABLE_PIP_VERSION_CHECK = 1

BIN = .venv/bin
READY = .venv/ready
# what the tests need beside: an oracle under the GPL, which is not installed for anything else
ORACLES = .venv/oracles
OUT ?= out
# nearly all of a test's time is compilation on one core; a worker takes up to 3 GB
PYTEST = python -m pytest -n auto --maxprocesses=4 --dist worksteal

DIRS = .venv .venv-oldest out build dist docs/_build docs/api docs/charts docs/shown

.PHONY: demo test slow reach trust release oldest docs lock clean

# at least a study for each pillar, and one where two meet; two at a time, as most of their time is
# compilation on one core
STUDIES = peg-insertion pour surgical-reach directions escapers cluster-tracers pareto-fronts solar-system double-pendulum

demo: $(READY)
	@$(MAKE) --no-print-directory -j2 --output-sync $(STUDIES:%=demo-%)
	@echo "The report is here:"
	@$(BIN)/jaxgpu report $(OUT)

demo-peg-insertion: OPTIONS = --taught --steps 10240 --copies 32 --seeds 3 --episodes 8 --measurements 2 --seed 1
demo-cluster-tracers: OPTIONS = --stars 128 --tracers 640 --seeds 1 --time 12
demo-surgical-reach: OPTIONS = --steps 200000 --seeds 3
demo-escapers: OPTIONS = --stars 128 --tracers 2048 --seeds 2 --time 8 --radii 2
demo-pour: OPTIONS = --calls 8 --seeds 1 --planners 2

demo-%:
	$(BIN)/jaxgpu run $* $(OPTIONS) --out $(OUT)/$* --resume

test: $(ORACLES)
	$(BIN)/$(PYTEST) -m "not slow"

slow: $(ORACLES)
	$(BIN)/$(PYTEST) -m "slow and not release"

# compile for an H100 and a TPU v5e, of which neither is needed, the programs that are not as they were
# when they last kept to their budgets: none if no source has changed. It writes down what keeps to
# them, to be committed. WRITE=--anew compiles all, WRITE=--write lowers the budgets besides and
# renews docs/reach.md
reach: $(READY)
	@$(MAKE) --no-print-directory -j$(if $(WRITE),1,2) reach-h100 reach-v5e

reach-%: build/reach/%/ready
	PYTHONPATH=build/reach/$* $(BIN)/python -m benchmarks.reach $* $(WRITE)

.PRECIOUS: build/reach/%/ready

# apart from the tests: the plugin for CUDA registers itself wherever it can be imported
build/reach/%/ready: benchmarks/reach/%.txt
	$(BIN)/python -m pip install -q --no-compile --require-hashes --no-deps --upgrade --target $(@D) -r $<
	@touch $@

# before a release: experiments at full size, all programs compiled for the chips, and the short tests
# on the oldest supported jax
release: $(ORACLES)
	$(BIN)/$(PYTEST) -m release
	@$(MAKE) --no-print-directory reach WRITE=--anew
	@$(MAKE) --no-print-directory oldest

# before a release: kills, flips, full disks, mutants, a bare wheel, licences; over 3.5 hours. On a core were
# measured: oversize 60 minutes, 10 of the 22 runs of kills 25, 97 of the 300 mutants 26, the others but fuzz 20.
# PARTS="kills flips" runs some; docs/trust.md takes its tables from what they write
trust: $(ORACLES)
	$(BIN)/python -m tests.trust $(PARTS)

oldest: $(ORACLES)
	$(BIN)/python -m venv --clear .venv-oldest
	cp -r .venv/lib .venv-oldest/ && cp .venv/bin/ruff .venv-oldest/bin/
	.venv-oldest/bin/python -m pip install -q --no-compile --no-deps jax==0.11.2 jaxlib==0.11.2
	.venv-oldest/bin/$(PYTEST) -m "not slow"

docs: $(READY)
	$(BIN)/python -m sphinx -W -q -b html docs docs/_build

$(READY): requirements.lock pyproject.toml
	@sh .ci/environment $(PY)
	.venv/bin/python -m pip install -q --no-compile --require-hashes --no-deps -r requirements.lock
	.venv/bin/python -m pip install -qq --no-compile --no-deps --no-build-isolation -e .
	@test -z "$(EXTRA)" || .venv/bin/python -m pip install -q "jax[$(EXTRA)]"
	@touch $@

$(ORACLES): $(READY) tests/requirements.txt
	.venv/bin/python -m pip install -q --no-compile --require-hashes --no-deps -r tests/requirements.txt
	@touch $@

lock:
	uv pip compile pyproject.toml requirements.in --extra dev --universal --python-version 3.12 \
	  --generate-hashes --no-header --no-annotate -o requirements.lock
	uv pip compile tests/requirements.in --no-deps --universal --python-version 3.12 \
	  --generate-hashes --no-header --no-annotate -o tests/requirements.txt

clean:
	rm -rf $(DIRS)
