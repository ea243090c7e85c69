# What a contributor needs. Nothing is asked of the machine but git, make and Python >= 3.11 with
# its venv module; all the rest comes from the package registry into .venv, once.

PYTHON ?= python3
# Tests wait as well as compute: four workers keep two cores busy.
JOBS ?= 4
# One worker runs all tests of a module, so that what they share is started once.
DIST := --dist loadfile --no-loadscope-reorder
ARGS ?=
BIN := .venv/bin
READY := .venv/.ready

# Tests start hundreds of Python processes, which must not compile all modules again, even if the
# environment forbids bytecode, as in many containers. An empty value allows it.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup up test soak lint bench conformance places docs release clean

help: ## Show these commands
	@sed -n 's/^\([a-z]*\):.*## /\1|/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; done
	@echo 'ARGS="..." is handed on, e.g. make test ARGS="-k yaml"; PYTHON=... chooses the interpreter'

setup: $(READY) ## Install everything into .venv; instant when that is done

up: $(READY) ## Start a control plane on this machine, with Pergola in it
	@$(BIN)/pergola up $(ARGS)

# A node keeps a core busy while it runs, so its tests come first, and it ends with them.
test: $(READY) ## Run the tests of every change, against a real API server
	@$(BIN)/python -m tools.programs
ifeq ($(ARGS),)
	@$(BIN)/pytest -n 2 --dist worksteal tests/node
	@$(BIN)/pytest -n $(JOBS) $(DIST) --ignore tests/node
else
	@$(BIN)/pytest -n $(JOBS) $(DIST) $(ARGS)
endif

soak: $(READY) ## Run the tests that take long; ARGS="--list" shows the parts, ARGS=PART runs one
	@$(BIN)/python -m tools.soak $(if $(HOURS),--hours $(HOURS)) $(ARGS)

lint: $(READY) ## Check style, types and the layering of the rooms
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@names=$$(find tests -name 'test_*.py' -exec basename {} \; | sort | uniq -d); \
		test -z "$$names" || { echo "several test modules have the same name:" $$names; exit 1; }

bench: $(READY) ## Measure, against a real API server
	@$(BIN)/python -m bench $(ARGS)

conformance: $(READY) ## Compare with the originals' own code; ARGS="SUBJECT --seconds N --seed N"
	@$(BIN)/python -m conformance $(ARGS)

places: $(READY) ## Let the originals' own code deploy the resource manager; ARGS="PLACE..."
	@$(BIN)/python -m conformance.places $(ARGS)

docs: $(READY) ## Build the documentation site into site/; a link that leads nowhere fails
	@$(BIN)/uv run --frozen --isolated --all-extras --group docs python -m tools.site site

release: $(READY) ## Write packages, image, charts, definitions and checksums into dist/
	@$(BIN)/python -m tools.release dist $(ARGS)

clean: ## Remove .venv and all caches of this directory
	rm -rf .venv dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# uv is installed by pip with its hash; it installs the rest as locked, and stays as part of it.
$(READY): uv.lock pyproject.toml .ci/uv.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo 'error: Python 3.11 or newer is needed: install it, or name it, as in make PYTHON=/path/to/python3.12' >&2; \
		exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo 'error: $(PYTHON) has no venv module: install it (Debian and Ubuntu: python3-venv)' >&2; \
		exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/uv --version 2>/dev/null | grep -qF "$$(sed -n 's/^uv==\([0-9.]*\).*/\1/p' .ci/uv.txt)" || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .ci/uv.txt
	@VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv sync --frozen --active
	@touch $@
