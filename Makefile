# Everything runs in .venv, which the first target builds: python3 (3.10 to 3.13) and make are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

export CREWAI_TRACING_ENABLED := false
export CREWAI_DISABLE_TELEMETRY := true
export OTEL_SDK_DISABLED := true
override ASK := $(value ASK)
export ASK

.PHONY: help demo test lint types bench data clean
help:  ## Show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 10

$(VENV)/ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 14))' || \
		{ echo "Python 3.10 to 3.13 is needed; $$($(PYTHON) --version) was found. Say which to use: make PYTHON=python3.12 …"; exit 1; }
	@echo "Setting up $(VENV) (once; about two minutes)"
	@$(PYTHON) -m venv $(VENV) || \
		{ echo "python3 has no venv module; on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[local,offline,voyage,dev]'
	@touch $@

demo: $(VENV)/ready  ## Fill a memory with a team and ask it questions; make demo ASK="…" asks yours
	@$(BIN)/python examples/quickstart.py

test: $(VENV)/ready lint types  ## Everything that has to hold: style, types, tests
	@$(BIN)/python -m pytest

lint: $(VENV)/ready  ## ruff: format and rules
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(VENV)/ready  ## mypy, strict
	@$(BIN)/mypy

bench: $(VENV)/ready  ## Round trips, bytes and seconds beside LanceDB and the earlier package
	@$(BIN)/python benchmarks/run.py

data: $(VENV)/ready  ## Rebuild data/embeddings.json and data/queries.json
	@$(BIN)/python scripts/build_embeddings.py

clean:  ## Remove the environment and what the demo and the tests left
	@rm -rf $(VENV) .demo .crewai .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
