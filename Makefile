# Everything that a developer or CI runs. `make` alone lists the targets.
# Needs Rust, Python 3.11 or later and make; the rest goes into a virtual environment, $(VENV).

VENV ?= .venv
# Where the demo and the tests look for PyTorch without CUDA before the default index, on Linux:
# 200 MB there, 3 GB with CUDA. Empty: the default index alone.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
# Options for pytest: make test-python PYTEST_ARGS="-k artifact -x"
PYTEST_ARGS ?=
# Processes that the Python tests share: make test-python WORKERS=0 runs them in one, for a debugger.
WORKERS ?= 2
# Parts of make test that run side by side.
JOBS ?= 2
# make check: the branch to compare with, and the files to take for the changed ones.
BASE ?=
FILES ?=
# Options for the benchmarks: make bench BENCH_ARGS="--tokenizer path/to/model"
BENCH_ARGS ?=
# How Rust is compiled (Cargo.toml): tests have the core's assertions and no link-time optimization, which
# is most of a build; what is measured, shown or shipped is a release.
PROFILE ?= $(if $(filter bench demo test-serving try-release wheel,$(MAKECMDGOALS)),release,suite)
# Options of make device: make device DEVICE_ARGS="--only tests"
DEVICE_ARGS ?=
# Options of make test-serving: the servers, each installed with all it needs into $(VENV)-NAME.
SERVERS ?= vllm==0.33.0 sglang==0.5.23
# make fuzz: seconds for each target, and which; all of them where none is named.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
# How many random cases the tests try: `long` is 40 times `fast`.
export TOKFOLD_HYPOTHESIS ?= fast

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$p && break; done)
BIN := $(abspath $(VENV))/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check
# Cargo takes no part in make's jobserver, of which it would see a half.
ALONE := env -u MAKEFLAGS -u MFLAGS
CARGO := $(ALONE) cargo
MATURIN := $(ALONE) PIP_QUIET=1 VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin
# One interpreter for every build, or PyO3 is built anew for each.
export PYO3_PYTHON := $(PY)
# Tests start hundreds of processes: each would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE
# What tests need beside the package.
EXTRAS := cli demo lark tiktoken tokenizers transformers

CARGO_FILES := Cargo.toml Cargo.lock .cargo/config.toml
RUST_FILES := $(CARGO_FILES) $(shell find rust -name '*.rs' -o -name Cargo.toml)
PACKAGE_FILES := README.md LICENSE pyproject.toml \
	$(shell find python -type f -not -name '*.pyc' -not -name '*.so')

# What is done once, again when pyproject.toml changes.
STAMPS := $(VENV)/.stamps
HAS_VENV := $(STAMPS)/venv
HAS_TORCH := $(STAMPS)/torch
HAS_DEMO := $(STAMPS)/demo
HAS_DOCS := $(STAMPS)/docs
HAS_TOOLS := $(STAMPS)/tools
HAS_TESTS := $(STAMPS)/tests
HAS_EXTENSION := $(STAMPS)/extension-$(PROFILE)
HAS_WHEEL := $(STAMPS)/wheel-$(PROFILE)
# Wheels of a release are in dist/; that of the tests is none to be given away.
DIST := $(if $(filter release,$(PROFILE)),dist,target/$(PROFILE)-dist)

.PHONY: help demo device docs check test test-serving fuzz bench wheel sdist try-release clean
.PHONY: tools test-rust test-python lint-rust lint-python types stub format
.DEFAULT_GOAL := help

help:
	@echo 'tokfold: fold the vocabulary of a language model under a grammar.'
	@echo
	@echo '  make demo         build, install and run a demonstration: a few minutes the first time'
	@echo '  make check        lints and tests of what changed, before a commit: up to 3 minutes'
	@echo '  make test         everything that is checked: lints, types, Rust and Python tests'
	@echo '  make test-serving the tests of the servers, against vLLM and SGLang: some 10 GB; SERVERS='
	@echo '  make fuzz         the fuzz targets of the core, each FUZZ_SECONDS=60; FUZZ_TARGETS=vocabulary'
	@echo '  make bench        the tables of docs/benchmarks.md; BENCH_ARGS="--tokenizer PATH"'
	@echo '  make device       what a GPU alone can prove, on a machine that has one: benches/device'
	@echo '  make docs         the site, in target/site/html; needs no Rust, a minute'
	@echo '  make wheel        a wheel for this machine, in dist/'
	@echo '  make sdist        a source distribution, in dist/'
	@echo '  make try-release  both, checked as the package index does, and used in an empty environment'
	@echo '  make format       put all code in the common format'
	@echo '  make clean        remove all that was built and $(VENV)'
	@echo
	@echo '  make check BASE=BRANCH    compare with another branch; FILES="a b" names the files'
	@echo 'Parts of make test: lint-rust lint-python types stub test-rust test-python'
	@echo '  make test-python PYTEST_ARGS="-k artifact -x"    options for pytest'
	@echo '  make test-python TOKFOLD_HYPOTHESIS=long         40 times as many random cases'
	@echo
	@echo 'Needs Rust, Python 3.11 or later, make. The rest is installed into $(VENV).'

# On a machine with a GPU, its Python and PyTorch; benches/device/bring.py packs what it lacks.
device:
	@$(PYTHON) benches/device/run.py $(DEVICE_ARGS)

demo: $(HAS_DEMO) $(HAS_EXTENSION)
	@$(BIN)/tokfold demo --real

docs: $(HAS_DOCS)
	@$(PY) docs/build_site.py

# Lints and tests of what changed since the merge base with the main branch. The extension of make
# test is made only where there is none: the check builds its own, in less time.
check: $(if $(wildcard $(HAS_EXTENSION)),,$(HAS_TESTS))
	@$(PY) tests/support/check.py --workers $(WORKERS) $(if $(BASE),--base $(BASE)) $(FILES)

# All parts, even when one fails; JOBS of them side by side. What does without the wheel runs while it is
# built; only one part at a time installs packages. The Rust tests are compiled where the extension is, and
# Cargo would let that wait for them: they come behind it.
test:
	@$(MAKE) --no-print-directory --keep-going -j $(JOBS) BEFORE_EXTENSION=$(HAS_TOOLS) \
		BEFORE_TEST_RUST=$(HAS_EXTENSION) PROFILE=$(PROFILE) \
		$(HAS_WHEEL) tools lint-python types lint-rust test-python test-rust
	@echo 'make test: all passed'

lint-rust: $(HAS_VENV)
	@cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

test-rust: $(HAS_VENV) $(BEFORE_TEST_RUST)
	$(CARGO) test --locked -q --profile $(PROFILE) -p tokfold-core -p tokfold-mask-store -p tokfold-fuzz --lib --tests
	$(CARGO) test --locked -q --profile $(PROFILE) -p tokfold-core --doc

fuzz:
	rust/fuzz/fuzz.sh run $(FUZZ_SECONDS) $(FUZZ_TARGETS)

lint-python: $(HAS_TOOLS)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(HAS_TOOLS)
	$(BIN)/mypy

stub: $(HAS_TESTS) $(HAS_EXTENSION)
	$(PY) -m pytest tests/project/test_stub.py

# By a thread: a test that waits for its own threads would swallow the exception of a signal.
test-python: $(HAS_TESTS) $(HAS_EXTENSION) $(HAS_WHEEL)
	TOKFOLD_WHEEL_DIR=$(abspath $(DIST)) $(PY) -m pytest -n $(WORKERS) --dist worksteal --timeout 900 \
		--timeout-method thread --durations 10 -ra $(PYTEST_ARGS)

# Their requirements exclude each other, so each has an environment of its own.
test-serving: $(HAS_WHEEL)
	@for server in $(SERVERS); do \
		name=$${server%%[=<>]*}; python=$(VENV)-$$name/bin/python; \
		test -x $$python || $(PYTHON) -m venv $(VENV)-$$name || exit 1; \
		$$python -m pip install --quiet "$$server" $$(ls dist/*.whl) hypothesis pytest \
			pytest-timeout || exit 1; \
		$$python -m pip list 2>/dev/null \
			| grep -E '^(sglang|tokfold|torch|transformers|vllm|xgrammar) '; \
		$$python -m pytest -ra --timeout 900 --timeout-method thread $(PYTEST_ARGS) \
			tests/serving/test_$$name.py || exit 1; \
	done

bench: $(HAS_TESTS) $(HAS_EXTENSION)
	$(PY) benches/python/bench_classes.py $(BENCH_ARGS)
	$(PY) benches/python/bench_xgrammar.py $(BENCH_ARGS)
	$(PY) benches/python/bench_engine.py $(BENCH_ARGS)

wheel: $(HAS_WHEEL)
	@ls -l dist/*.whl

tools: $(HAS_TOOLS)

sdist: $(HAS_VENV)
	rm -f dist/*.tar.gz
	$(MATURIN) sdist --out dist
	@ls -l dist/*.tar.gz

# What the release workflow does on each platform, for this one; other wheels in dist/ are named.
try-release: $(HAS_WHEEL) sdist
	$(PIP) install --quiet 'twine>=6.1'
	$(PY) -m twine check --strict dist/*
	$(PY) .ci/try_wheels.py dist

format: $(HAS_TOOLS)
	$(CARGO) fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf $(VENV) $(VENV)-vllm $(VENV)-sglang target dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	rm -f python/tokfold/_core*.so
	find python tests benches -name __pycache__ -prune -exec rm -rf {} +

$(HAS_VENV): pyproject.toml
	@test -n "$(PYTHON)" || { echo 'no Python 3.11 or later found; try make PYTHON=...'; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS)
	$(PIP) install --quiet --upgrade 'pip>=25.1' 'maturin>=1.8,<2'
	@$(PIP) install --quiet 'uv>=0.8' || echo 'no uv: pip serves, in a minute more'
	@touch $@

# XGrammar needs PyTorch, whose wheel on the default index brings CUDA along.
$(HAS_TORCH): $(HAS_VENV)
	@if [ -n "$(TORCH_INDEX)" ] && [ "$$(uname -s)" = Linux ]; then \
		echo 'looking for PyTorch without CUDA at $(TORCH_INDEX)'; \
		$(PIP) install --quiet --no-deps --retries 0 --index-url $(TORCH_INDEX) torch 2>/dev/null \
		|| echo 'not there: the default index serves, 3 GB with CUDA'; \
	fi
	@touch $@

# The wheel has been built, so nothing is compiled here.
$(HAS_EXTENSION): $(RUST_FILES) pyproject.toml | $(HAS_WHEEL) $(HAS_TORCH) $(BEFORE_EXTENSION)
	$(MATURIN) develop --profile $(PROFILE) --locked --quiet
	@rm -f $(STAMPS)/extension-*
	@touch $@

$(HAS_DEMO): pyproject.toml $(HAS_TORCH) | $(HAS_EXTENSION)
	$(PIP) install --quiet 'tokfold[demo]'
	@touch $@

$(HAS_DOCS): pyproject.toml | $(HAS_VENV)
	$(PIP) install --quiet --group docs
	@touch $@

# Unpacking PyTorch and CUDA takes uv a quarter of the time of pip, which serves where uv finds no index.
$(HAS_TOOLS): pyproject.toml $(HAS_TORCH)
	@$(PY) tests/support/extras.py $(EXTRAS) >$(STAMPS)/requirements.txt
	$(BIN)/uv pip install --quiet --python $(PY) --group test --requirement $(STAMPS)/requirements.txt \
		|| $(PIP) install --quiet --group test --requirement $(STAMPS)/requirements.txt
	@touch $@

$(HAS_TESTS): $(HAS_TOOLS) | $(HAS_EXTENSION)
	@touch $@

$(HAS_WHEEL): $(RUST_FILES) $(PACKAGE_FILES) | $(HAS_VENV)
	rm -f $(DIST)/*.whl
	$(MATURIN) build --profile $(PROFILE) --locked --quiet --out $(DIST)
	@touch $@
