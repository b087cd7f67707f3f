# Two commands need nothing but Python ≥ 3.11 and pip: `make demo` and `make test`.
# Each makes its own virtual environment in .venv and installs what it needs, at the versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-fast fuzz check format bench docs clean help

help:
	@echo "make demo       see DQN diverge where C-DQN does not (below 5 minutes)"
	@echo "make test       all tests; make test-fast: without the slow learning tests"
	@echo "make fuzz       look for ways to break it: MINUTES=60 SEED=0"
	@echo "make check      ruff, mypy, import-linter"
	@echo "make bench      speed, memory and replay benchmarks"
	@echo "make docs       the documentation as a site: site/index.html"

demo: $(VENV)/installed
	$(BIN)/cdqn demo

test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

test-fast: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

MINUTES ?= 60
SEED ?= 0

fuzz: $(VENV)/installed-dev
	$(BIN)/python tests/fuzz/run.py --minutes $(MINUTES) --seed $(SEED)

check: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/replay_scaling.py
	$(BIN)/python benchmarks/update_speed.py
	$(BIN)/python benchmarks/speed_vs_sb3.py
	$(BIN)/python benchmarks/atari_speed.py
	$(BIN)/python benchmarks/frame_replay.py --fifo 50000 --random 10000

docs: $(VENV)/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html; with search: $(BIN)/python -m http.server --directory site"

$(VENV)/created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml constraints.txt
	$(INSTALL) --editable .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(INSTALL) --editable ".[dev]"
	touch $@

$(VENV)/installed-docs: $(VENV)/installed
	$(INSTALL) --editable ".[docs]"
	touch $@

$(VENV)/installed-bench: $(VENV)/installed-dev
	$(INSTALL) --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) build dist site src/*.egg-info
