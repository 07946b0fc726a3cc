# Every target does its own set-up: a fresh Debian with python3, pip, git and make is enough, as root or as a user.

PYTHON ?= python3
WORKERS ?= 2
ARGS ?=
BIN := .venv/bin
# Tests type some thousand commands; where bytecode is not kept, each of them compiles a thousand modules again.
export PYTHONDONTWRITEBYTECODE =
# One thread of linear algebra a worker: threads of busy workers wait for each other.
FULL := DUALMANDATE_KILLS=full DUALMANDATE_PROGRAMS=5000 DUALMANDATE_MUTATIONS=2000 DUALMANDATE_CHECKED=1000 DUALMANDATE_PUBLISHED=200
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS)

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test check format bench docs requirements

help: ## this list
	@grep -hE '^[a-z]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 16

setup: ## .venv with everything to run, test and check (about a minute; at once when nothing changed)
	@$(PYTHON) scripts/environment.py test

demo: ## the whole story on the embedded Title I program; prints where the report lies
	@$(PYTHON) scripts/environment.py base
	@$(BIN)/dualmandate demo $(ARGS)

quick: setup ## the tests that need no system package, in about eight minutes on two cores
	@$(PYTEST) -m "not slow and not browser and not postgres and not ssh and not spark" $(ARGS)

test: ## every test, with the real system parts (installed if that is allowed)
	@$(PYTHON) scripts/system_parts.py
	@$(PYTHON) scripts/environment.py test
	@$(PYTEST) $(ARGS)

check: setup ## ruff, mypy --strict, and the order of the rooms
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: setup ## lay the code out as `make check` wants it
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

bench: ## the benchmarks beside the peers that are installed; without ARGS=NAME also every promise with its full numbers, and their page
	@$(PYTHON) scripts/system_parts.py
	@$(PYTHON) scripts/environment.py test
	@$(BIN)/dualmandate benchmark $(ARGS)
	@$(if $(ARGS),,$(FULL) DUALMANDATE_COUNTS=.counts.json $(PYTEST) $$($(BIN)/python scripts/promises.py tests))
	@$(if $(ARGS),,$(BIN)/python scripts/promises.py write .counts.json)

docs: setup ## every link of the docs resolves, every code block runs
	@$(BIN)/python -m pytest tests/docs $(ARGS)

requirements: ## compile requirements/ anew, to the newest versions
	@$(PYTHON) scripts/environment.py requirements
