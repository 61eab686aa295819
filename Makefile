# Everything a developer runs. `make demo` and `make test` need nothing but Python 3.11 or newer
# (and Java 17 or newer, else the one from the lock is used).

# the first Python that really runs and is new enough: a version manager's stub may only complain
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$name && break; \
	done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
# some machines forbid it, and then each of the hundreds of processes of a test run, each start of a
# server and each command would read and compile all of its modules anew
export PYTHONDONTWRITEBYTECODE :=
# the longest first: what follows fills the gaps
TESTS := tests/faults tests/system tests/cases tests/unit

.PHONY: demo example test soak lint classes bench docs ui lock clean install

## a live pipeline from nothing: servers, flows, events, a table that changes; ONCE=1 checks and ends
demo: $(STAMP)
	$(BIN)/python examples/shop/demo.py $(if $(filter 1,$(ONCE)),--once)

## an example that checks its own answer: NAME=searches; without a name it lists them
example: $(STAMP)
	$(BIN)/python examples/run.py $(NAME)

## all checks and tests
test: $(STAMP)
	scripts/system-packages
	$(MAKE) -j 2 lint classes
	$(BIN)/python -m pytest -n 3 --no-loadscope-reorder $(TESTS)

## longer, and other random choices each time: exactly once under 30 deaths of the engine and of what it is connected to, 220 made-up
## queries, Nexmark and cases in other pieces; MAINSTEM_SEED=n repeats a run
soak: export MAINSTEM_SEED ?= $(shell date +%s)
soak: $(STAMP)
	MAINSTEM_KILLS=30 $(BIN)/python -m pytest tests/faults -s
	MAINSTEM_QUERIES=220 $(BIN)/python -m pytest tests/system/properties -s
	$(BIN)/python -m pytest tests/cases tests/system/nexmark tests/soak

## style and types
lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# what starts Spark, starts it faster
classes: $(STAMP)
	$(BIN)/python -m mainstem.engine.class_archive

## throughput, latency and memory, measured on this machine
bench: $(STAMP)
	$(BIN)/python tests/bench

## reference pages from the code
docs: $(STAMP)
	$(BIN)/python scripts/generate-docs

## the page anew, from ui/ into the package; needs Node 20 (what is built is committed, so nobody else does)
ui:
	cd ui && npm install --no-audit --no-fund --no-save && npm run build

## new versions of all dependencies, with hashes
lock: $(STAMP)
	PYTHON=$(BIN)/python scripts/lock-packages

install: $(STAMP)

# once for each state of the lock; pip checks every hash, and leaves modules that nobody imports
# uncompiled
$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing Python packages into $(VENV) (once; a few minutes on a slow line)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .bench
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
