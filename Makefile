# Every task sets up what it needs: `make demo` works in a fresh clone.

SHELL := /bin/sh
VENV := .venv
PYTHON := $(VENV)/bin/python
LOCKED := $(VENV)/.locked
INSTALLED := $(VENV)/.installed
IN_PARALLEL := -n auto --maxprocesses 4 --dist worksteal
PIP_PROGRESS := \
	/^ *Downloading/ { name = $$2; sub(".*/", "", name); print "  " name, $$3, $$4; fflush() } \
	/^Installing/ { print "  Unpacking ..."; fflush() }

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-s3 setup-kafka lock demo test test-all test-matrix test-cluster test-wheel dist build-tool check bench bench-idivm bench-keeper bench-strategies \
	bench-choices bench-cluster bench-tpch bench-engine bench-live bench-soak bench-fuzz bench-watch bench-many bounds coverage papers plots docs site site-version

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Create .venv with the locked versions and install Viewkeep into it
	@$(PYTHON) scripts/check_java.py || true

setup-s3: $(INSTALLED) requirements-s3.lock ## Install the emulator of S3 for tests/objects, in .venv-s3
	@$(PYTHON) -m venv --clear --without-pip .venv-s3
	@$(PYTHON) -m pip --python .venv-s3/bin/python install --quiet --disable-pip-version-check \
		--no-deps -r requirements-s3.lock

setup-kafka: tests/sources/kafka_jars.xml ## Get a broker of Kafka and Spark's source of it for tests/sources, in .kafka-jars (needs Maven)
	@mvn --quiet --batch-mode -f tests/sources/kafka_jars.xml dependency:copy-dependencies \
		-DoutputDirectory="$(CURDIR)/.kafka-jars"

demo: setup ## Keep four views of a shop fresh, and compare them
	@$(PYTHON) examples/demo.py

test: setup ## Run all tests, slow ones included
	@$(PYTHON) -m pytest $(IN_PARALLEL)

check: $(INSTALLED) ## Lint, check the format and the types
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy

test-all: check setup-s3 ## Run check, then all tests with many more random cases
	@VIEWKEEP_LONG=1 $(PYTHON) -m pytest $(IN_PARALLEL)

test-matrix: $(INSTALLED) ## Run the core of the lake's tests with every version of Spark, classic and Connect
	@$(PYTHON) scripts/test_matrix.py --docs

test-cluster: $(INSTALLED) ## Run lakes on a cluster of two workers, started as processes of this machine
	@VIEWKEEP_CLUSTER=1 $(PYTHON) -m pytest tests/cluster

bench-cluster: $(INSTALLED) ## Keep views of TPC-H by a cluster of two workers, and tell the driver's memory
	@$(PYTHON) -m bench.cluster

test-wheel: $(INSTALLED) build-tool ## Build the wheel and try it in a new environment for each extra (EXTRAS="core lake", NEWEST=1)
	@$(PYTHON) scripts/test_wheel.py $(if $(NEWEST),--newest) $(EXTRAS)

dist: $(INSTALLED) build-tool ## Build the source distribution and the wheel, in dist/
	@rm -rf dist
	@$(PYTHON) -m build --outdir dist .

build-tool: $(INSTALLED)
	@$(PYTHON) -m build --version >/dev/null 2>&1 || $(PYTHON) -m pip install --quiet build

bench: $(INSTALLED) ## Run every benchmark in bench/
	@for script in bench/[!_]*.py; do \
		name=$$(basename "$$script" .py); \
		echo "== $$name"; $(PYTHON) -m "bench.$$name" || exit 1; \
	done

bench-idivm: $(INSTALLED) ## Compare ID-based scripts with tuple-based ones and recomputation
	@$(PYTHON) -m bench.idivm

bench-keeper: $(INSTALLED) ## Compare refreshes of a lake with recomputation by DuckDB and Spark, up to 50M rows
	@$(PYTHON) -m bench.keeper
	@$(PYTHON) -m bench.windows

bench-tpch: $(INSTALLED) ## Compare refreshes of the TPC-H queries with recomputation, by Spark and DuckDB
	@$(PYTHON) -m bench.tpch

bench-strategies: $(INSTALLED) ## Compare the strategies of large joins, triangles, devices and TPC-H queries with recomputation
	@$(PYTHON) -m bench.strategies

bench-choices: $(INSTALLED) ## Measure every strategy of many views and changes, and whether auto uses the fastest
	@$(PYTHON) -m bench.choices

bench-live: $(INSTALLED) ## Measure live views: rows taken in, look-ups, how soon they are resumed
	@$(PYTHON) -m bench.live

bench-fuzz: $(INSTALLED) ## 10 minutes of random queries, types and histories in one process against an oracle in plain Python
	@$(PYTHON) -m bench.fuzz

bench-soak: $(INSTALLED) ## 15 minutes of changes at the highest rate, with a watcher that is killed every 30 s
	@$(PYTHON) -m bench.soak

bench-watch: $(INSTALLED) ## Measure the time from a commit to the views that show it, under viewkeep watch
	@$(PYTHON) -m bench.watch

bench-many: $(INSTALLED) ## 20,000 small refreshes with vacuums between them: does a lake stay small and quick?
	@$(PYTHON) -m bench.many_refreshes --docs

bench-engine: $(INSTALLED) ## Measure the compiled engine beside its rivals, for docs/engine_figures.md
	@$(PYTHON) -m bench.engine --docs --pathway .venv-pathway

bounds: $(INSTALLED) ## Measure the exponents of update time and delay by step counts
	@$(PYTHON) -m bench.bounds
	@$(PYTHON) -m bench.adaptive
	@$(PYTHON) -m bench.lake_bounds

coverage: $(INSTALLED) ## Tell how constructs of SQL and the queries of TPC-H and TPC-DS are kept, in docs
	@$(PYTHON) -m bench.coverage
	@$(PYTHON) -m bench.coverage --docs
	@$(PYTHON) -m bench.constructs --docs

papers: $(INSTALLED) ## Try the claims of the papers, printed value beside measured, in docs/papers.md
	@$(PYTHON) -m bench.papers $(PAPERS)

plots: $(INSTALLED) ## Measure and draw the figures in docs/plots/
	@$(PYTHON) -m bench.skew --parts hubs --plot docs/plots/hubs.svg
	@$(PYTHON) -m bench.tradeoff --plot docs/plots/tradeoff.svg

docs: $(INSTALLED) ## Make the generated pages of docs/ again
	@for script in docs/make_*.py; do \
		[ -e "$$script" ] || continue; \
		echo "== $$script"; $(PYTHON) "$$script" || exit 1; \
	done

site: $(INSTALLED) ## Build the documentation as a site, in site/
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict --quiet
	@echo "site/index.html is there; $(PYTHON) -m mkdocs serve shows it"

site-version: $(INSTALLED) ## Put the site of this version beside those of others, in the local branch gh-pages
	@test -x $(VENV)/bin/mike || $(PYTHON) -m pip install --quiet mike
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mike deploy --update-aliases \
		"$$($(PYTHON) -c 'import viewkeep; print(".".join(viewkeep.__version__.split(".")[:2]))')" latest
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mike set-default latest
	@echo "the branch gh-pages has it; git push origin gh-pages publishes it"

lock: $(INSTALLED) ## Resolve pyproject.toml into requirements.lock, keeping versions that still fit
	@$(PYTHON) -m uv --version >/dev/null 2>&1 || $(PYTHON) -m pip install --quiet uv
	@$(PYTHON) -m uv pip compile pyproject.toml --extra dev --quiet --no-header \
		--no-emit-index-url --no-emit-find-links -o requirements.lock
	@echo "requirements.lock is up to date; make setup installs it"

$(INSTALLED): pyproject.toml $(LOCKED)
	@echo "Installing Viewkeep ..."
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

# A pipe hides pip's exit status from make, so the stamp is written by pip's success alone.
$(LOCKED): requirements.lock | $(PYTHON)
	@rm -f $@
	@echo "Installing the locked versions (the first time takes a few minutes) ..."
	@{ PYTHONUNBUFFERED=1 $(PYTHON) -m pip install --disable-pip-version-check \
		--progress-bar off -r $< && touch $@; } | awk '$(PIP_PROGRESS)'
	@test -e $@

# A command named python3.12 may exist and not run (version managers put such stand-ins in the
# path), so each candidate is asked to start and to say that it is new enough.
$(PYTHON):
	@for python in python3.11 python3.12 python3.13 python3.14 python3 python; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
			echo "Creating $(VENV) with $$($$python --version) ..."; \
			$$python -m venv --clear $(VENV) && exit 0; \
			rm -rf $(VENV); \
			echo "$$python cannot create a virtual environment: install its venv module," \
				"e.g. apt-get install python3-venv (Debian, Ubuntu)" >&2; \
			exit 1; \
		fi; \
	done; \
	echo "Python 3.11 or newer is needed and was not found: install it," \
		"e.g. apt-get install python3.11 python3.11-venv (Debian, Ubuntu)" \
		"or brew install python@3.11 (macOS)" >&2; \
	exit 1
