# make demo and make test create .venv. They need Python 3.11 or later, a network, and Java 17 or
# later, which is installed with apt-get if it is missing.

BIN := .venv/bin
WORKERS ?= 2
LOCK_FLAGS ?=
export MUNTIN_PROFILE ?= ci

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types layers pytest test-connectors test-console bench docs
.PHONY: format lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## create .venv from requirements.lock; install Java if it is missing
	@scripts/setup.sh

demo: setup ## play the demo on a local Spark: one query, sixteen queries, three times the load
	@$(BIN)/muntin demo

test: lint types layers pytest ## check everything (MUNTIN_PROFILE=fast|ci|deep, WORKERS=n)

check: test test-connectors ## run everything that CI runs

lint: setup ## check rules and format with ruff
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## check types with mypy, strictly
	$(BIN)/mypy

layers: setup ## check the direction of imports with import-linter
	$(BIN)/lint-imports

pytest: setup ## run only the tests
	@$(BIN)/python scripts/compile_kernels.py $(WORKERS)
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup --durations 25 --durations-min 5

test-connectors: setup ## test against an S3 server and a Kafka broker here; needs Maven, installed if missing
	@scripts/connectors.sh
	$(BIN)/pytest -m connectors tests/connectors

test-console: setup ## test the web console in Chromium, which is installed if missing
	@scripts/console.sh
	$(BIN)/pytest -m console tests/console

bench: setup ## run all benchmarks into docs/results, up to two hours; resumes after an interruption
	$(BIN)/python -m benchmarks all --resume

docs: setup ## build the documentation site into site/ and check every link
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir site
	@echo "open site/index.html, or run .venv/bin/mkdocs serve while you write"

format: setup ## fix and format with ruff
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## write requirements.lock from pyproject.toml (LOCK_FLAGS=--upgrade for newer versions)
	@scripts/lock.sh $(LOCK_FLAGS)

clean: ## remove .venv and everything that tools left behind
	rm -rf .venv .connectors .console .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	rm -rf build dist site src/*.egg-info
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
