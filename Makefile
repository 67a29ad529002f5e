# `make demo` shows all features; `make test` tests a change; `make down PURGE=1` removes everything.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-$(shell sha256sum requirements/dev.txt | cut -c1-12)
CODE := crds plan kube egress http_server internal_tls controller build runner api actions client clients dev tests bench examples
REPORTS := test-results
# Python and pytest keep what they compiled, also where the environment forbids it: each worker imports 700 modules.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help up pythons down env status deploy dev ready demo test test-all check lint types contracts unit affected cluster e2e campaign bench fuzz fuzz-parsers mutants coverage sbom audit tools nightly-tools clients docs pictures lock format version clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

up: ## start the dev cluster: a one-node Kubernetes with Crewyard on it (idempotent); HA=1: two replicas with PostgreSQL, S3 and Redis; HA=0: one again
	@$(PYTHON) -m dev up $(if $(HA),--ha $(HA))

pythons: ## like up, and offer Python 3.11 to 3.14; `up` keeps them
	@CREWYARD_PYTHONS="3.11 $(if $(filter x86_64,$(shell uname -m)),3.12) 3.13 3.14" $(PYTHON) -m dev up

down: ## stop it; remove its processes, mounts, interfaces and rules (PURGE=1: also its state)
	@$(PYTHON) -m dev down $(if $(filter 1,$(PURGE)),--purge)

env: ## print exports: eval "$$(make -s env)" sets KUBECONFIG, PATH, CREWYARD_URL and CREWYARD_API_KEY
	@$(PYTHON) -m dev env

status: ## show which parts of the dev cluster are running
	@$(PYTHON) -m dev status

deploy: ## roll out the current code to the running dev cluster
	@$(PYTHON) -m dev deploy

dev: ready ## run API server and controller from the checkout, restarted when a file changes
	@$(BIN)/python -m dev live

define ensurepip
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null; } \
	  || { echo "make: $(PYTHON) has no venv module; install the package python3-venv" >&2; exit 1; }
endef

$(STAMP): requirements/dev.txt
	@echo "==> Python packages into $(VENV) (about a minute when cold)"
	$(ensurepip)
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@rm -f $(VENV)/.installed-* && touch $@

# The packages download while `up` compiles. `up` uses apt too, which runs once at a time: so ensurepip is first.
ready: ## up, and the Python packages of tests
	$(ensurepip)
	@$(MAKE) -j2 up $(STAMP)

demo: ready ## demo on the dev cluster: a commit becomes a deployment, a run, events and an artifact; MODEL=1: a crew with a scripted model
	@eval "$$($(PYTHON) -m dev env)" && $(BIN)/python -m tests.e2e.$(if $(MODEL),model_demo,demo)

# Lint, types and contracts run beside the tests, of which the conventions are a part. A failure of one fails the target after the tests.
# Half of the tests' time is waiting: five workers keep two cores busy.
# $(1): arguments of pytest; $(2): a command that runs before, alone.
define complete_run
	@mkdir -p $(REPORTS) && eval "$$($(PYTHON) -m dev env)" && code=0 \
	  && { $(or $(2),true) || code=$$?; } \
	  && { $(MAKE) lint types contracts WITH_UNIT_TESTS=1 >$(REPORTS)/check.log 2>&1 & check=$$!; } \
	  && { CREWYARD_COMPLETE_RUN=1 $(BIN)/pytest -n 5 --dist loadscope --durations=25 --durations-min=5 \
	    --junitxml=$(REPORTS)/$@.xml tests $(1) || code=$$?; } \
	  && { wait $$check || { code=$$?; echo "lint, types or contracts failed ($(REPORTS)/check.log):"; cat $(REPORTS)/check.log; }; } \
	  && $(BIN)/python -m tests.slow $(REPORTS)/$@.xml && exit $$code
endef

test: ## check, and the tests of a change: unit, against the kube-apiserver, end-to-end
	@$(PYTHON) -m dev fit test
	@$(MAKE) ready tools
	$(call complete_run,-m "not campaign and not nightly")

test-all: ## all tests but the campaign: also those marked `nightly`
	@$(PYTHON) -m dev fit test-all
	@$(MAKE) ready tools nightly-tools
	$(call complete_run,-m "not campaign and not alone",CREWYARD_NODE_FAULTS=1 CREWYARD_COMPLETE_RUN=1 $(BIN)/pytest -q tests/campaign/node -m "alone and not campaign")

check: $(STAMP) ## lint, types, contracts and the unit tests that a change affects, side by side (ALL=1: all unit tests)
	@$(MAKE) -j2 --output-sync=target lint types contracts $(if $(ALL),unit WITH_UNIT_TESTS=1,affected)

lint: $(STAMP) ## ruff, codespell, the conventions of names and prose, and the tests of the documentation
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/codespell docs manifests $(filter-out tests,$(CODE)) *.md
	@$(if $(WITH_UNIT_TESTS),,$(BIN)/pytest -q -p no:cacheprovider tests/unit/conventions tests/unit/docs)

types: $(STAMP) ## mypy --strict
	@$(BIN)/mypy

contracts: $(STAMP) ## import-linter: check the allowed imports between packages
	@$(BIN)/lint-imports

unit: $(STAMP) ## unit tests, without a cluster
	@$(BIN)/pytest -q -n 2 tests/unit

# testmon knows which functions each test has called, but not which data files it read: their hash names its environment.
# Where git cannot list them, the time names it, and all tests run.
DATA_FILES := git ls-files -co --exclude-standard -z -- ':!*.py' ':!*.md' ':!docs' ':!bench' ':!.github' ':!client/crewyard/plan'

affected: $(STAMP) ## unit tests that a change since their last run affects; the first time, and after a change of a data file, all
	@mkdir -p $(REPORTS) && data="$$({ $(DATA_FILES) | xargs -0 sha256sum | sha256sum || date +%s%N; } | tail -n 1 | cut -d " " -f 1)" \
	  && TESTMON_DATAFILE=$(REPORTS)/testmon $(BIN)/pytest -q -n 2 tests/unit --ignore tests/unit/conventions \
	    --ignore tests/unit/docs --testmon --testmon-forceselect --testmon-env "'$$data'"

cluster: ## tests of controller and API server against the kube-apiserver (DELAYS=number: with random pauses around calls and before events)
	@$(PYTHON) -m dev fit cluster
	@$(MAKE) ready tools
	@eval "$$($(PYTHON) -m dev env)" && CREWYARD_TEST_DELAYS=$(DELAYS) $(BIN)/pytest -n 5 --dist loadscope tests/cluster -m "not campaign and not nightly"

e2e: ready tools ## end-to-end tests
	@eval "$$($(PYTHON) -m dev env)" && $(BIN)/pytest tests/e2e

campaign: ## two and a half hours of fault injection, Runs compared with Jobs, guards removed, and a report (reproduce: SEED=number ONLY=test; HA=1: also two replicas)
	@$(PYTHON) -m dev fit campaign
	@$(MAKE) ready tools
	@eval "$$($(PYTHON) -m dev env)" && code=0 && { CREWYARD_NODE_FAULTS=1 CREWYARD_CAMPAIGN_SEED="$(SEED)" \
	  CREWYARD_CAMPAIGN_REPORT="$${CREWYARD_CAMPAIGN_REPORT:-$$(mktemp -d)}" $(BIN)/pytest -s --durations=25 \
	  -o timeout=3600 -o faulthandler_timeout=3500 tests/campaign $(if $(ONLY),tests/security/holes -m "" -k "$(ONLY)",-m campaign) || code=$$?; } \
	  $(if $(ONLY),,&& { $(BIN)/pytest -n 3 --dist load tests/security/holes -m campaign || code=$$?; }) && exit $$code

fuzz: ## 10,000 requests generated from the OpenAPI document
	@$(PYTHON) -m dev fit fuzz
	@$(MAKE) ready tools
	@eval "$$($(PYTHON) -m dev env)" && CREWYARD_FUZZ_EXAMPLES=200 CREWYARD_FUZZ_CASES=10000 $(BIN)/pytest tests/cluster/api_http/test_fuzz.py

fuzz-parsers: $(STAMP) ## coverage-guided fuzzing of untrusted-input parsers (SECONDS=60 each, TARGETS=all)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.txt
	@PYTHONPATH=client $(BIN)/python -m tests.fuzz $(or $(SECONDS),60) $(TARGETS)

mutants: $(STAMP) ## mutation testing of pure and guarding code (PART=auth; all parts take hours)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/mutants.txt
	@$(BIN)/python -m dev.mutants $(PART)

COVERAGE_FLOORS := crds:85 plan:88 kube:65 egress:80 controller:60 build:44

coverage: $(STAMP) ## branch coverage of the unit tests, with a floor for each package
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/mutants.txt
	@mkdir -p test-results/coverage && $(BIN)/coverage erase
	@code=0; $(BIN)/coverage run -m pytest -q -n 2 tests/unit || code=$$?; $(BIN)/coverage combine -q; \
	  for floor in $(COVERAGE_FLOORS); do package=$${floor%%:*}; \
	    echo "$$package: $$($(BIN)/coverage report --include="$$package/*" --format=total) % (at least $${floor#*:} %)"; \
	    $(BIN)/coverage report --include="$$package/*" --fail-under=$${floor#*:} >/dev/null || code=2; done; exit $$code

sbom: ## write CycloneDX documents of the service image, the runner and the client to sbom/
	@$(PYTHON) -m dev.sbom sbom

audit: $(STAMP) sbom ## list known vulnerabilities (if pip's index has the data) and licences
	@test -x $(VENV)/audit/bin/pip-audit || $(PYTHON) -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/audit.txt
	@$(VENV)/audit/bin/python -m dev.sbom.validate sbom/*.json
	@$(PYTHON) -m dev.sbom.audit $(VENV)/audit/bin/pip-audit sbom/*.json

tools: ## install what only tests use: act, actionlint, dex, helm, kubeconform, kstatus, versitygw, servers and a browser
	@$(PYTHON) -m dev tools

nightly-tools: ## build cosign and Kueue, which only test-all uses
	@$(PYTHON) -m dev nightly-tools

pictures: $(STAMP) tools ## the pictures of the console in the documentation
	@CREWYARD_PICTURES=docs/pictures $(BIN)/pytest -q tests/browser/test_pictures.py

docs: $(STAMP) ## build the documentation site: site/index.html (open it, or serve the directory)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

version: ## print the version, or set it everywhere (V=X.Y.Z)
	@$(PYTHON) -m dev.version $(V)

clients: $(STAMP) tools ## generate the TypeScript and Go clients from the OpenAPI document
	@$(BIN)/python -m clients.generate

bench: ## run the measurements, each against its peer; results in bench/results
	@$(PYTHON) -m dev fit bench
	@$(MAKE) ready
	@eval "$$($(PYTHON) -m dev env)" && $(BIN)/python -m bench

format: $(STAMP) ## format the code as lint requires
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

lock: $(STAMP) ## update the pinned requirements/ from pyproject.toml
	@for set in service:pyproject.toml "dev:pyproject.toml --group test --group dev" "fuzz:--group fuzz" \
	    "audit:--group audit" "mutants:--group mutants -c requirements/dev.txt"; do \
	  file=requirements/$${set%%:*}.txt; \
	  { echo "# Pinned by \`make lock\` from pyproject.toml."; \
	    $(BIN)/uv pip compile $${set#*:} --generate-hashes --no-header --no-annotate -q \
	      --no-emit-index-url --python-version 3.11; } > $$file.new; mv $$file.new $$file; done

clean: ## remove the virtual environment and caches of the working tree
	@rm -rf $(VENV) site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
