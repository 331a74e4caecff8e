# A fresh machine needs Python >= 3.11 (with its venv module) and make; everything else goes into $(VENV).
# Stamp files in $(VENV) remember what is done, so that a repeated call starts at once.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
PYTHONS ?= python3.11 python3.13
LOCK_ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
TEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
MODEL_FILES := $(wildcard deploy/servers/local-model.txt)

.DEFAULT_GOAL := help
.PHONY: help demo quick test integration lowest newest release-check localstack coverage check weight bench chaos docs lock clean
.NOTPARALLEL:

quick lowest newest: JOBS ?= 2
# Many of these wait for processes: four at once keep two cores busy, of those that run a model three.
test: JOBS ?= 4
integration coverage release-check: JOBS ?= 3

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-21s%s\n", $$1, $$2 }'
	@echo "Variables: PYTHON=$(PYTHON) VENV=$(VENV) JOBS PYTEST_ARGS PYTHONS LOCK_ARGS"

demo: $(VENV)/.model ## run a small sweep on a real local model, print its leaderboard, write an HTML report
	$(BIN)/evalcube run examples/quickstart.yaml
	$(BIN)/evalcube report results/quickstart.zarr -o results/quickstart.html
	@printf '%s\n' '' 'What next?' \
		'  $(BIN)/evalcube explore results/quickstart.zarr             look at it in a browser' \
		'  $(BIN)/evalcube compare results/quickstart.zarr             which model is better, with a p-value' \
		'  $(BIN)/evalcube init --questions FILE.csv                   a config for your own questions'

quick: $(VENV)/.installed ## run the unit tests and doctests but for long ones, with fewer random examples
	$(TEST) -m "unit and not long" --hypothesis-profile=quick $(PYTEST_ARGS)

test: $(VENV)/.installed ## run all tests but those of `make integration` (PYTEST_ARGS="-k name" for some)
	$(TEST) -m "not integration and not model" $(PYTEST_ARGS)

integration: $(VENV)/.model $(VENV)/.adapters .localstack/.installed ## run the tests that take minutes, and those with a real local model
	$(TEST) -m "integration or model" $(PYTEST_ARGS)

# With what warns in versions that nobody pinned let be. Readers of answers and replies use Python's own.
lowest: RESOLUTION = lowest-direct ## run the tests of `make quick` with the lowest versions that pyproject.toml allows
lowest: TIER = unit and not long
newest: RESOLUTION = highest ## run unit tests with the newest versions that pyproject.toml allows
newest: TIER = unit
lowest newest: $(VENV)/.installed
	$(BIN)/uv pip compile pyproject.toml --extra dev --resolution $(RESOLUTION) --upgrade --quiet --output-file $(VENV)/$@.txt
	"$(PYTHON)" -m venv --clear $(VENV)/$@
	$(BIN)/uv pip install --quiet --python $(VENV)/$@/bin/python -r $(VENV)/$@.txt
	$(BIN)/uv pip install --quiet --python $(VENV)/$@/bin/python --no-deps --no-build-isolation -e .
	$(VENV)/$@/bin/python -m pytest -n $(JOBS) --dist worksteal -m "$(TIER)" --hypothesis-profile=quick -W default \
		--ignore=tests/stages/generate/answers --ignore-glob="tests/stages/generate/test_*.py" --ignore=tests/stages/reply $(PYTEST_ARGS)

# A user of the sdist has a new environment: tests of commands run there, and the folders that they could take instead are gone.
release-check: $(VENV)/.packages ## build a release into dist/, try it on PYTHONS, list what it depends on (CycloneDX)
	rm -rf dist $(VENV)/release
	$(BIN)/python -m build --no-isolation
	$(TEST) -m "not integration" tests/test_packaging.py
	mkdir -p $(VENV)/release/sources
	tar -xzf dist/evalcube-*.tar.gz -C $(VENV)/release/sources --strip-components=1
	"$(PYTHON)" -m venv $(VENV)/release/quick
	touch $(VENV)/release/quick/.created
	VIRTUAL_ENV=$(abspath $(VENV))/release/quick $(MAKE) -C $(VENV)/release/sources quick \
		VENV=$(abspath $(VENV))/release/quick PIP="$(abspath $(BIN))/uv --quiet pip"
	cd $(VENV)/release/sources && rm -r evalcube deploy flows stages storage
	set -e; for python in $(PYTHONS); do \
		"$$python" -c "" 2>/dev/null || { echo "Not tried on $$python, which is not on this machine." >&2; continue; }; \
		environment=$(abspath $(VENV))/release/$$python; \
		"$$python" -m venv $$environment; \
		$(BIN)/uv pip install --quiet --python $$environment/bin/python --require-hashes -r constraints.txt; \
		$$environment/bin/python -m pip --quiet --disable-pip-version-check install dist/evalcube-*.tar.gz; \
		(cd $(VENV)/release/sources && $$environment/bin/python -m pytest -n $(JOBS) --dist worksteal -m "not integration" \
			tests/flows/cli $(PYTEST_ARGS)); \
	done
	$(BIN)/uv init --quiet --bare --no-workspace --name release $(VENV)/release/list
	$(BIN)/uv add --quiet --project $(VENV)/release/list --no-sync --constraints constraints.txt \
		"evalcube[complete] @ file://$$(echo "$$PWD"/dist/*.whl)"
	$(BIN)/uv export --quiet --preview-features sbom-export --project $(VENV)/release/list --frozen --format cyclonedx1.5 \
		--output-file dist/evalcube.cdx.json

localstack: .localstack/.installed ## install a second S3 server, which the tests of `make integration` talk to

# Kills lose what a killed process had measured, so that chaos would cost minutes and show nothing.
coverage: $(VENV)/.model ## run tests but those that take minutes, and show which lines they miss
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n $(JOBS) --dist worksteal -m "not integration and not chaos" $(PYTEST_ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: $(VENV)/.installed ## lint, format, types, layers: what "clean" means
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deno fmt --check
	$(BIN)/python -m tests.weight
	$(BIN)/python -m tests.words

weight: $(VENV)/.installed ## count code lines, files, commands, options, config keys, names and vague words, beside their ceilings
	$(BIN)/python -m tests.weight
	$(BIN)/python -m tests.words

bench: $(VENV)/.model ## measure the seconds that people feel, CPU per trial, and how much of an endpoint a sweep uses
	$(BIN)/python benchmarks/felt.py
	$(BIN)/python benchmarks/end_to_end.py
	$(BIN)/python benchmarks/saturation.py

chaos: $(VENV)/.installed ## kill a sweep of 20 000 trials 200 times and compare it with an undisturbed one (SEED=1)
	$(BIN)/python -m tests.chaos --kills 200 --trials 20000 --seed $(or $(SEED),1)

docs: $(VENV)/.docs ## build the documentation and the reference of the Python names into site/index.html
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet -b html docs site
	$(BIN)/python -m tests.docs.widths site

# Kept versions stay as they are; LOCK_ARGS=--upgrade takes newer ones, LOCK_ARGS="--upgrade-package dask" one.
# --fork-strategy fewest: one version of each package on every Python, so that all machines compute alike.
lock: $(VENV)/.packages ## compile constraints.txt and those of docs and adapters anew after a change of pyproject.toml
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --custom-compile-command "make lock" --quiet $(LOCK_ARGS) --output-file constraints.txt
	$(BIN)/uv pip compile pyproject.toml --extra docs --constraints constraints.txt --universal --python-version 3.11 \
		--fork-strategy fewest --generate-hashes --custom-compile-command "make lock" --quiet $(LOCK_ARGS) \
		--output-file constraints-docs.txt
	$(BIN)/uv pip compile pyproject.toml tests/data/lm_eval/clients.txt --extra gym --extra lm-eval --constraints constraints.txt \
		--universal --python-version 3.11 --fork-strategy fewest --generate-hashes --custom-compile-command "make lock" --quiet \
		$(LOCK_ARGS) --output-file constraints-adapters.txt

.localstack/.installed: tests/storage/support/localstack.txt | $(VENV)/.installed
	"$(PYTHON)" -m venv --clear .localstack
	$(BIN)/uv pip install --quiet --python .localstack/bin/python -r $<
	@touch $@

clean: ## remove the environment, caches and build outputs; results/ stays, its answers were paid for
	rm -rf .venv .localstack dist build site jupyter_execute .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "evalcube needs Python 3.11 or newer, and '$(PYTHON)' is not on this machine." >&2; \
		echo "Install it (Debian, Ubuntu: apt install python3 python3-venv) or name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "evalcube needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" -V 2>&1)." >&2; \
		echo "Name a newer one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot make virtual environments: its venv module is missing." >&2; \
		echo "Install it (Debian, Ubuntu: apt install python3-venv), then call make again." >&2; exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"
	@touch $@

$(VENV)/.packages: constraints.txt $(VENV)/.created
	$(PIP) install --require-hashes -r constraints.txt
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.packages
	$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.docs: constraints-docs.txt $(VENV)/.installed
	$(PIP) install --require-hashes -r constraints-docs.txt
	@touch $@

# Packages whose tasks we ask: some have to be compiled, and `make test` does without. The file has all of what they need,
# but not as pip would ask for extras.
$(VENV)/.adapters: constraints-adapters.txt $(VENV)/.installed
	$(PIP) install --no-deps --require-hashes -r constraints-adapters.txt
	@touch $@

$(VENV)/.model: $(MODEL_FILES) $(VENV)/.installed
	$(BIN)/evalcube local setup
	@touch $@
