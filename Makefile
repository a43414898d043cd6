# Every command of this repository; `make` alone lists them. `make check` is the one to know.

PYTHON ?= python3
JOBS ?= 3
MINUTES ?= 60
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
HEAVY := $(VENV)/.heavy
BUILD := .build

.DEFAULT_GOAL := help
.PHONY: help setup demo test check audit mutants bench format lint types imports wheel docs lines clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the package and its test tools (PYTHON=python3)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("sulq needs Python 3.11 or newer: make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo "setting up $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

# A browser, PostgreSQL and Spark with a Java: what the tests drive for real. Without root the browser must be there already.
$(HEAVY): $(READY)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test,heavy]'
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq -o Acquire::Retries=3 update \
			&& DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 install -y chromium >/dev/null; } \
		|| echo "no chromium on the path: the browser's tests are skipped (a failure under .ci/run)"
	@touch $@

demo: $(READY) ## show sulq at work on made-up people, then open the console (DEMO_ONCE=1: leave after the story)
	@$(BIN)/sulq demo

# Bytecode is kept whatever the shell says: a sandboxed process may not write its own, and would compile at each start.
# A test that runs for ten minutes hangs: its stack is printed and it has failed.
LIMIT := -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
test: $(HEAVY) ## run the tests, heavy tools included (JOBS=3; TESTS="tests/language -k grid" for some of them)
	@$(BIN)/python -m compileall -q src
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(LIMIT) $(TESTS)

check: ## everything a change must pass: lint, types, imports, wheel, tests (which run the docs), the kernel's lines
	@$(MAKE) --no-print-directory lint types imports wheel test lines

audit: $(HEAVY) ## the long statistical and fault runs, resumable (MINUTES=60; 0: full counts); writes docs/audit.md
	@$(BIN)/python -m tools.audit --minutes $(MINUTES)

mutants: $(READY) ## plant the real bugs of other systems in a copy of the code and show which test notices each
	@$(BIN)/python -m tools.mutants

bench: $(HEAVY) ## the benchmarks (FULL=1: every peer and size); writes docs/benchmarks.md, -learn.md, -release.md, -budget.md, -epsilon.md, -peers.md
	@FULL=$(FULL) $(BIN)/python -m benchmarks

format: $(READY) ## put the code in form
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(READY) ## form, rules, and no dead code
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/vulture

types: $(HEAVY) ## mypy --strict on src
	$(BIN)/mypy --strict src

imports: $(READY) ## who may import whom
	$(BIN)/lint-imports

wheel: $(READY) ## build the wheel, try it in an empty environment and run there what README.md and docs/start.md show
	@rm -rf $(BUILD)/wheel $(BUILD)/empty
	$(BIN)/python -m build --wheel --outdir $(BUILD)/wheel .
	@$(PYTHON) -m venv $(BUILD)/empty
	@$(BUILD)/empty/bin/python -m pip install --quiet --constraint constraints.txt $(BUILD)/wheel/*.whl
	$(BUILD)/empty/bin/python -I tools/readme.py README.md docs/start.md
	cd $(BUILD) && empty/bin/sulq --version && empty/bin/python -I -c 'import sulq; print("imported sulq", sulq.__version__)'

docs: $(READY) ## write the generated pages anew, then run what the docs show
	$(BIN)/python -m tools.reference
	$(BIN)/python -m pytest -q tests/test_docs.py

lines: $(READY) ## the kernel's lines by room, what else is trusted; fails where the kernel is past its budget
	@$(BIN)/python -m tools.lines

clean: ## remove what these commands made, but not the audit's state (.audit)
	rm -rf $(VENV) $(BUILD) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests tools benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
