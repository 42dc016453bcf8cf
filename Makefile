# make demo and make test need nothing but Python 3.11 or later, Java 17 or later (installed where apt-get can) and a
# network: they make .venv on their own.

BIN := .venv/bin
WORKERS ?= 2
LOCK_FLAGS ?=
export MUNTIN_PROFILE ?= ci

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types layers pytest bench docs format lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## make .venv from requirements.lock and see to Java, unless all is there
	@scripts/setup.sh

demo: setup ## run the demo on a local Spark: standing queries over two generated sensor streams
	@$(BIN)/muntin demo

test: lint types layers pytest ## lint, types, import layers, then all tests (MUNTIN_PROFILE=fast|ci|deep, WORKERS=n)

check: test ## everything CI runs

lint: setup ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## mypy, strict
	$(BIN)/mypy

layers: setup ## import-linter: imports go one way
	$(BIN)/lint-imports

pytest: setup ## the tests alone
	@$(BIN)/python scripts/compile_kernels.py $(WORKERS)
	$(BIN)/pytest -n $(WORKERS) --dist loadgroup

bench: setup ## all benchmarks, into docs/results: up to two hours; goes on where it was interrupted
	$(BIN)/python -m benchmarks all --resume

docs: setup ## build the documentation site into site/, strictly: every link is checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --site-dir site
	@echo "site/index.html is the first page; .venv/bin/mkdocs serve shows it while you write"

format: setup ## let ruff repair and format what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: ## write requirements.lock from pyproject.toml (LOCK_FLAGS=--upgrade for newer versions)
	@scripts/lock.sh $(LOCK_FLAGS)

clean: ## remove .venv and everything tools left behind
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist site src/*.egg-info
	find src tests examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
