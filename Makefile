# Every target builds .venv when it is missing or stale; `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*/\1/p' $(MAKEFILE_LIST))

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
SOURCES := src graph nodes papers prompts

# The strict editable install links files one by one, so it is renewed when one comes or goes.
FINGERPRINT := $(shell (cat pyproject.toml constraints.txt; find $(SOURCES) -type f -not -name '*.pyc' | sort) | cksum | tr -d ' ')
DEV := $(VENV)/dev-$(FINGERPRINT)
SERVE := $(or $(wildcard $(DEV)),$(VENV)/serve-$(FINGERPRINT))
RUN := $(or $(wildcard $(DEV)),$(wildcard $(SERVE)),$(VENV)/run-$(FINGERPRINT))
PIP = $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
INSTALL = $(PIP) $(UNCOMPILED) --config-settings editable_mode=strict --editable

# One worker more than cores, as many tests wait for servers; each holds models in memory, so at most 4.
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

export Q

help:
	@grep -E '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -E 's/:.*  ## /\t/' | expand -t 16

# Before anything is installed.
question:
	@test -n "$$Q" || { echo 'Say what to ask: make ask Q="What is a knowledge strip?"' >&2; exit 2; }

ask: question $(RUN)  ## Ask the guide in docs/: make ask Q="What is a knowledge strip?"
	@$(BIN)/crag index docs/guide docs/method --index .crag/guide
	@$(BIN)/crag ask "$$Q" --index .crag/guide || [ $$? -ge 3 ]

serve: $(SERVE)  ## Serve the guide: page and API: make serve PORT=3000
	@$(BIN)/crag index docs/guide docs/method --index .crag/guide
	$(BIN)/crag serve --index .crag/guide $(if $(PORT),--port $(PORT))

# The processes that tests start would otherwise each compile crag again.
test test-unit test-data test-nightly: export PYTHONDONTWRITEBYTECODE =

test: $(DEV)  ## Run the tests
	$(PYTEST)

test-unit: $(DEV)  ## Run the tests that start no server and train nothing
	$(PYTEST) -m 'not slow and not browser and not data and not nightly'

# Collecting the other files would take longer than these tests do.
test-data: $(DEV)  ## Run the tests that read the development data: make test-data DATA=../shared/data
	$(PYTEST) $(if $(PROFILE),--hypothesis-profile $(PROFILE)) -m data --data '$(DATA)' $(shell grep -rl --include='test_*.py' 'pytest\.mark\.data' tests)

# A browser and Ray Serve are no tools of development. Chromium comes from the system's packages.
test-nightly: $(DEV)  ## Run all tests: browser, kills, notebooks, more random examples (an hour)
	$(PIP) playwright axe-playwright-python 'ray[serve]'
	$(PYTEST) --hypothesis-profile nightly -m 'not data'

check: $(DEV)  ## Lint, check types and the import contracts
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-style check-mypy check-pyright

check-style: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

check-mypy: $(DEV)
	$(BIN)/mypy

check-pyright: $(DEV)
	$(BIN)/pyright

format: $(DEV)  ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV)  ## Write the generated parts of README and docs
	$(BIN)/python -m tests.generated

notebooks: $(DEV)  ## Run the notebooks and write their outputs
	$(BIN)/python -m tests.notebooks.executing

bench-quality: $(DEV)  ## Repeat the papers' tables with the embedded default, into build/bench
	BIN='$(BIN)' papers/recipes/quality.sh '$(DATA)'

bench-docs: $(DEV)  ## Measure evidence kept and answers right over real documentation
	mkdir -p build
	$(BIN)/python -m crag.papers.studies.docs_questions '$(DATA)/docs' --cache build/docs.json

audit-official: $(DEV)  ## Compare with the authors' programs: make audit-official OFFICIAL=folder-of-checkouts
	@test -n "$(OFFICIAL)" || { echo 'Name the folder of the checkouts: make audit-official OFFICIAL=../official' >&2; exit 2; }
	$(BIN)/python -m crag.papers.released.audit '$(OFFICIAL)' $(AUDITS)

dist: $(DEV)  ## Build wheel and source distribution reproducibly into dist/
	$(BIN)/python .ci/dist.py

define install
	$(PYTHON) -m venv $(VENV)
	@echo "Installing crag$(1) into $(VENV) (a minute, with the tools of development a few)"
	$(INSTALL) '.$(1)'
	@rm -f $(VENV)/dev-* $(VENV)/serve-* $(VENV)/run-*
	@touch $@
endef

# To compile all packages takes longer than the few modules that a first question imports.
$(VENV)/run-% $(VENV)/serve-%: UNCOMPILED := --no-compile

$(VENV)/dev-%:
	$(call install,[dev])

$(VENV)/serve-%:
	$(call install,[serve])

$(VENV)/run-%:
	$(call install,)
