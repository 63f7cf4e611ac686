# Waybill. `make demo` shows it, `make test` checks it, `make up` leaves it running on an emulator.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/.tools/sam/bin:$(CURDIR)/.tools/emulator/bin:$(PATH)
export UV_LINK_MODE ?= copy
export SAM_CLI_TELEMETRY := 0
# Bytecode is kept: without it the SAM CLI alone takes twice the time, each time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1|/' | column -t -s '|'

# --- environments ---------------------------------------------------------------------------------------------------
# Three, for the SAM CLI and the emulator pin what the others need otherwise. Each is made again when its lock changes.

ENVIRONMENTS := .venv/.made .tools/sam/.made .tools/emulator/.made

.PHONY: setup
setup: $(ENVIRONMENTS) ## make the environments for development, the SAM CLI and the emulator

.tools/uv/.made: requirements/uv.txt
	@echo "making .tools/uv"
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python's venv module is not complete; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .tools/uv
	@.tools/uv/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

.venv/.made: requirements/dev.txt pyproject.toml .tools/uv/.made
	@echo "making .venv"
	@$(call environment,.venv,requirements/dev.txt)
	@.tools/uv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

.tools/%/.made: requirements/%.txt .tools/uv/.made
	@echo "making .tools/$*"
	@$(call environment,.tools/$*,requirements/$*.txt)
	@touch $@

# An environment that holds exactly what a lock names: $(call environment,FOLDER,LOCK)
environment = [ -x $(1)/bin/python ] || .tools/uv/bin/uv venv --quiet --python "$$(command -v $(PYTHON))" $(1); \
	.tools/uv/bin/uv pip sync --quiet --python $(1)/bin/python --require-hashes $(2)

.PHONY: lock
lock: .tools/uv/.made ## pin what pyproject.toml and requirements/*.in allow (LOCK_FLAGS=--upgrade for the newest)
	@for name in sam emulator uv audit; do $(call compile,requirements/$$name.in,requirements/$$name.txt); done
	@$(call compile,pyproject.toml --all-extras,requirements/dev.txt)
	@$(call compile,pyproject.toml --extra runtime --constraint requirements/dev.txt $(LEFT_OUT),layers/dependencies/requirements.txt)
	@echo "now: make setup, and python -m tools.licences for docs/licences.md"

compile = .tools/uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate $(LOCK_FLAGS) \
	--custom-compile-command 'make lock' $(1) --output-file $(2)

# The Lambda runtime brings boto3 and what it needs, compiled already; a copy in the layer would only slow the start.
# Ion's way to JSON can convert arrays of numpy, which nothing here has.
LEFT_OUT := $(foreach name,boto3 botocore s3transfer python-dateutil six urllib3 numpy,--no-emit-package $(name))

# --- checks ---------------------------------------------------------------------------------------------------------

.PHONY: lint
lint: .venv/.made ## ruff and strict mypy
	@ruff check .
	@ruff format --check .
	@mypy

.PHONY: lint-template
lint-template: $(ENVIRONMENTS) .tools/audit/.made ## sam validate, cfn-lint with the rules for serverless, checkov
	@sam validate --lint --region us-east-1
	@# WS1004 looks for a log group by the function's default name; ours are named in LoggingConfig, which a test asserts.
	@cfn-lint --append-rules cfn_lint_serverless.rules --ignore-checks WS1004 -- template.yaml
	@.tools/audit/bin/checkov --config-file .checkov.yaml 2>/dev/null

PYTEST ?= -n 2 --dist loadfile

.PHONY: audit
audit: .tools/audit/.made ## known vulnerabilities of what is in the layer; asks PyPI
	@.tools/audit/bin/pip-audit --disable-pip --require-hashes --strict --requirement layers/dependencies/requirements.txt

.PHONY: test
test: setup lint lint-template ## set up, check, and run every test (PYTEST=options of your own)
	@pytest $(PYTEST)

RUNS ?= 2000
SEED ?= 1

.PHONY: torture
torture: setup ## kill the engine at every point, 2,000 runs (RUNS, SEED); what came of it is in build/torture.json
	@python -m tests.torture --runs $(RUNS) --seed $(SEED)

.PHONY: bench
bench: setup ## measure (BENCH=names of modules); the figures are in build/benchmarks.json
	@python -m benchmarks $(BENCH)

# --- to run it ------------------------------------------------------------------------------------------------------

INPUT ?= events/demo/warehouse.jsonl

.PHONY: demo
demo: setup ## record, ship and file on an emulator, and show what came of it (INPUT=reports.jsonl for reports of yours)
	@python -m demo.run "$(INPUT)"

.PHONY: build
build: setup ## build for release
	@env -u AWS_ENDPOINT_URL sam build

.PHONY: up
up: setup ## put the stack on an emulator that stays, for trying things by hand
	@python -m tools.up up

.PHONY: down
down: setup ## end that emulator
	@python -m tools.up down

.PHONY: clean
clean: down ## remove what was built; the environments stay
	@rm -rf build .aws-sam
