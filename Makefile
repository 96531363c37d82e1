# `make serve` and `make test` do all their own set-up in .venv; a fresh machine needs only Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TYPED := .cache/typing/trainmedic
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt
HOST ?= 127.0.0.1
PORT ?= 8000
# One test process for each core: the knowledge is indexed once for all of them.
PARALLEL ?= --numprocesses logical --maxprocesses 8 --dist worksteal
# Tests that need neither the index nor a server.
FAST := tests/parse tests/rules tests/causes tests/frameworks tests/glossary tests/test_mask.py tests/test_messages.py \
  $(addprefix tests/service/test_,$(addsuffix .py,compose diagnose domain negation out_of_scope query query_text series supposition_and_topic whatif))
# What covers the packages of pyproject.toml's coverage settings, in every branch. `slow` tests measure growth.
COVERING := tests/parse tests/rules tests/causes tests/mechanisms tests/defects tests/test_mask.py tests/test_identities.py tests/test_run_diff.py \
  tests/service/test_diagnosis.py tests/service/test_source_of_release.py tests/frameworks/test_horizon.py

# The tests start hundreds of processes, each of which would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install serve wheel bundle docs release doctor secrets test test-rest test-fast coverage test-vllm test-deployment test-load lint types format bench clean
.DEFAULT_GOAL := help

help:
	@echo "make serve   start the service on http://$(HOST):$(PORT) (installs what it needs first); PORT=8080 takes another port"
	@echo "make wheel   two wheels in dist/: trainmedic, and trainmedic-data with the encoder and the search index"
	@echo "make bundle  an archive in dist/ that installs trainmedic on a machine without internet"
	@echo "make docs    the documents with search and the knowledge as a site, in .cache/site"
	@echo "make release VERSION=0.2.0  sets the version and tags it, if the changelog has it and nothing is uncommitted"
	@echo "make doctor  dist/doctor.pyz: trainmedic doctor as one file for machines where nothing is installed"
	@echo "make secrets  keys and passwords for compose.yaml, in var/, unless they are there"
	@echo "make test    run the tests (installs the test tools and CPU torch first)"
	@echo "make test-fast  the tests of reading, rules, pages, questions and composition: less than a minute"
	@echo "make test-rest  the tests that make coverage does not run"
	@echo "make coverage   whether every branch of what reads user text, decides, masks and verifies is tested"
	@echo "make test-vllm  the tests against the real vLLM server on CPU (installs it into the user's cache, 2.5 GB)"
	@echo "make test-deployment  builds the image and the bundle, and runs both (root, minutes)"
	@echo "make test-load  the service under load and with faults (minutes)"
	@echo "make lint    ruff and mypy strict"
	@echo "make bench   the benchmarks of benchmarks/README.md"

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed (make PYTHON=...), this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The default: no torch, no CUDA.
$(VENV)/.installed: $(VENV)/.python pyproject.toml kb/data/pyproject.toml setup.py constraints.txt
	@echo "installing into $(VENV); the first time this takes some minutes"
	$(PIP) --editable '.[serve,slack,mcp,notify,ingest,postgres,otel]' --editable kb/data
	@touch $@

# Torch first: a range that admits newer releases would bring several GB of CUDA packages with it. Older releases of pip
# know no dependency groups.
$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) 'torch>=2.2,<2.14' 'pip>=25.1'
	$(PIP) --editable '.[serve,slack,mcp,notify,ingest,otel,postgres,st]' --editable kb/data --group dev
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-dev
	$(PIP) --group bench
	@touch $@

# The index of the shipped pages, in trainmedic-data. Later starts embed only pages that have changed since.
$(VENV)/.indexed: $(VENV)/.installed
	@echo "building the search index; this takes about a minute"
	$(BIN)/trainmedic index build --package >/dev/null
	@touch $@

install: $(VENV)/.indexed

# Answers search by words until the index is built, a minute after the first start.
serve: $(VENV)/.installed
	$(BIN)/trainmedic serve --host $(HOST) --port $(PORT)

# The index is made to fit the pages each time, because a wheel is for others. Setuptools ships whatever an earlier build
# left in build/.
wheel: $(VENV)/.installed
	$(BIN)/trainmedic index build --package >/dev/null
	rm -rf build kb/data/build
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist . ./kb/data

bundle: wheel
	docs/deploy/airgap/make_bundle.sh $(BIN)/python dist

docs: $(VENV)/.installed
	$(PIP) 'pip>=25.1'
	$(PIP) --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open .cache/site/index.html"

release:
	@.ci/release $(VERSION)

doctor: $(VENV)/.installed
	$(BIN)/python -m trainmedic.ui.doctor.single_file dist/doctor.pyz

secrets:
	@docs/deploy/make_secrets.sh var

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL)

# What `coverage` does not run, so that both together run each test once.
test-rest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL) $(addprefix --leave-out=,$(COVERING))

test-fast: export HYPOTHESIS_PROFILE = fast
test-fast: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL) -m 'not slow' $(FAST)

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PARALLEL) -m 'not slow' --cov --cov-fail-under=100 --cov-report=term:skip-covered $(COVERING)

# Apart from `test`: the server's packages get an environment of their own, made once for each lock.
test-vllm: $(VENV)/.installed-dev
	$(BIN)/python -m tests.vllm.environment
	$(BIN)/python -m pytest tests/vllm

# Apart from `test`: builds of minutes, as root, with Debian's packages buildah and debootstrap.
test-deployment: $(VENV)/.installed-dev
	$(BIN)/python -m pytest tests/deployment

# Apart from `test`: minutes of load, and faults that need root (a full disk) or Debian's package faketime (a clock that
# jumps), which are skipped without.
test-load: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -s tests/load

lint: $(VENV)/.installed-dev types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev $(TYPED)
	$(BIN)/mypy

# The package as it is installed, for mypy, which follows no editable install.
$(TYPED): setup.py
	@mkdir -p $@
	@for name in trainmedic/*.py trainmedic/py.typed kb service ingest ui; do ln -sfn "$(CURDIR)/$$name" $@; done

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .cache build dist *.egg-info $(addprefix kb/data/,build *.egg-info trainmedic_data/index trainmedic_data/.index)
