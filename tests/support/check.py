"""What ``make check`` runs: the lints and the tests that belong to the files that changed.

Changed is what differs from the merge base with the main branch, committed or not, and what git
does not track yet. :data:`AREAS` says which tests belong to which folder, in one place;
``tests/project/test_check.py`` holds it against the folders that there are.

    python tests/support/check.py             run what belongs to the changed files
    python tests/support/check.py --list      say what would run, and what would be left
    python tests/support/check.py FILE...     take these files for the changed ones
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASES = ("origin/main", "origin/master", "main", "master")
"""Branches with which the merge base is looked for, the first one that there is."""

ALL = ("tests",)
PYTHON = (
    "tests/classes",
    "tests/cli",
    "tests/compiler",
    "tests/differential",
    "tests/engine",
    "tests/first_use",
    "tests/grammar",
    "tests/hostile",
    "tests/pages",
    "tests/project",
    "tests/serving/test_transformers.py",
    "tests/structural_tags",
    "tests/vocabulary",
    "tests/xgrammar_wrapper",
)
PAGES = (
    "tests/pages/test_readme.py",
    "tests/pages/test_pages.py",
    "tests/pages/test_links.py",
    "tests/pages/test_contributing.py",
    "tests/pages/test_figures.py",
    "tests/pages/test_site.py",
    "tests/pages/test_release.py",
    "tests/*/test_page.py",
    "tests/differential/test_differences.py",
)
SCHEMAS = ("tests/json_schema", "tests/cli/test_cli_schemas.py")
LARK = ("tests/grammar/test_sources.py", "tests/grammar/test_grammar_api.py", "tests/mask_store")
TAGS = ("tests/structural_tags", "tests/differential/test_structural_tags.py")
VOCABULARIES = ("tests/vocabulary",)
PROCESSORS = ("tests/serving",)
MASK_STORES = ("tests/mask_store",)
GRAMMARS = (
    "tests/grammar/test_grammars.py",
    "tests/grammar/test_hard_grammars.py",
    "tests/differential/test_real_grammars.py",
)


CRATES = {"rust/core/": "tokfold-core", "rust/mask_store/": "tokfold-mask-store"}
"""The crates with tests of their own, by their folders; all rest on the first."""


@dataclass(frozen=True)
class Area:
    """A folder or file of the project, and the tests that belong to it."""

    prefix: str
    """A file, or a folder with ``/`` behind it."""
    tests: tuple[str, ...] = ()
    """Files and folders of tests, as patterns."""


AREAS = (
    # The core. What all else rests on has all tests.
    Area("rust/core/src/json_schema/", SCHEMAS),
    Area("rust/core/src/regular/", ("tests/json_schema", "tests/grammar/test_macros.py")),
    Area("rust/core/src/lark/", LARK),
    Area("rust/core/src/ending/", ("tests/engine/test_ending*.py",)),
    Area("rust/core/src/chart/", ("tests/engine/test_chart*.py", "tests/chart_gpu")),
    Area("rust/core/src/laboratory/", ("tests/laboratory",)),
    Area("rust/core/src/", ALL),
    Area("rust/core/", ()),  # its own tests and examples
    Area("rust/mask_store/", MASK_STORES),
    Area("rust/fuzz/", ()),
    Area("rust/python/", ALL),
    Area("Cargo.toml", ALL),
    Area("Cargo.lock", ALL),
    Area(".cargo/", ("tests/hostile",)),
    # The package.
    Area("python/tokfold/chart_gpu/", ("tests/chart_gpu",)),
    Area("python/tokfold/cli/", ("tests/cli", "tests/laboratory/test_*cli.py")),
    Area("python/tokfold/laboratory/commands/", ("tests/cli", "tests/laboratory/test_*cli.py")),
    Area("laboratory/", ("tests/project/test_packaging.py", "tests/pages/test_release.py")),
    Area("python/tokfold/laboratory/fidelity/", ("tests/laboratory/test_fidelity*.py",)),
    Area("python/tokfold/laboratory/forest/", ("tests/laboratory/test_forest*.py",)),
    Area("python/tokfold/laboratory/lint/", ("tests/laboratory/test_lint*.py",)),
    Area("python/tokfold/laboratory/neural/", ("tests/laboratory/test_neural*.py",)),
    Area("python/tokfold/laboratory/optimize/", ("tests/laboratory/test_optimize*.py",)),
    Area("python/tokfold/laboratory/", ("tests/laboratory",)),
    Area("python/tokfold/mask_store/", MASK_STORES),
    Area("python/tokfold/structural_tags/", TAGS),
    Area("python/tokfold/_tags/", TAGS),
    Area("python/tokfold/torch/", ("tests/logits", *PROCESSORS)),
    Area("python/tokfold/xgrammar/", ("tests/xgrammar_wrapper",)),
    Area(
        "python/tokfold/_converters/", ("tests/xgrammar_wrapper/test_xgrammar_guards.py", *SCHEMAS)
    ),
    Area("python/tokfold/_text_checks.py", (*PYTHON, *SCHEMAS, *PROCESSORS)),
    Area("python/tokfold/_loaders/", VOCABULARIES),
    Area("python/tokfold/_serving/", ("tests/serving",)),
    Area("python/tokfold/sglang/", ("tests/serving",)),
    Area("python/tokfold/vllm/", ("tests/serving",)),
    Area("python/tokfold/llama_cpp.py", PROCESSORS),
    Area("python/tokfold/mlx.py", PROCESSORS),
    Area("python/tokfold/transformers.py", PROCESSORS),
    Area("python/tokfold/_core.pyi", ("tests/project/test_stub.py",)),
    Area("python/tokfold/vocabulary.py", VOCABULARIES),
    Area("python/tokfold/", PYTHON),
    # Tests: a file that changed is run itself; what tests share is run by all of its folder.
    Area("tests/support/", ("tests/project/test_support.py", "tests/project/test_check.py")),
    Area("tests/oracles/", ("tests/project/test_oracles.py",)),
    Area("tests/strategies/", ()),
    Area("tests/conftest.py", ("tests/project/test_support.py",)),
    Area("tests/", ()),
    # Pages and what they show.
    Area("docs/", PAGES),
    Area("README.md", PAGES),
    Area("CONTRIBUTING.md", (*PAGES, "tests/project/test_check.py")),
    Area("CHANGELOG.md"),
    Area("DESIGN.md", ("tests/pages/test_links.py", "tests/pages/test_contributing.py")),
    Area("SECURITY.md", ("tests/pages/test_links.py",)),
    Area("CITATION.cff", ("tests/project/test_package.py",)),
    Area("LICENSE"),
    Area("examples/treebank/", ("tests/chart_gpu/test_treebank.py",)),
    Area("examples/", ("tests/serving/test_examples.py",)),
    Area("benches/", ("tests/project/test_benches.py", "tests/pages/test_figures.py")),
    Area("grammars/", GRAMMARS),
    Area("Makefile", ("tests/pages/test_readme.py",)),
    Area("pyproject.toml", ("tests/project/test_package.py", "tests/pages/test_readme.py")),
    Area("rustfmt.toml"),
    Area(".ci/", ("tests/pages/test_release.py",)),
    Area(".github/", ("tests/pages/test_release.py",)),
    Area(".gitignore"),
)
"""The first area whose prefix begins the name of a file is that file's."""


class CheckError(Exception):
    """What keeps the check from running, with what to do."""


@dataclass
class Plan:
    """What is run for some changed files."""

    files: list[str]
    tests: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def python(self) -> list[str]:
        return [file for file in self.files if file.endswith((".py", ".pyi")) and exists(file)]

    def touches(self, *prefixes: str) -> bool:
        return any(file.startswith(prefixes) for file in self.files)

    @property
    def rust(self) -> bool:
        return self.touches("rust/", "Cargo.", ".cargo/", "rustfmt.toml")


def exists(file: str) -> bool:
    return (ROOT / file).exists()


def area_of(file: str) -> Area | None:
    for area in AREAS:
        if file == area.prefix or (area.prefix.endswith("/") and file.startswith(area.prefix)):
            return area
    return None


def matching(patterns: Iterable[str]) -> list[str]:
    """The files and folders of tests that patterns stand for."""
    return [
        path.relative_to(ROOT).as_posix()
        for pattern in patterns
        for path in sorted(ROOT.glob(pattern))
    ]


def plan_of(files: Sequence[str]) -> Plan:
    """What belongs to changed files; a file without an area has all tests."""
    plan = Plan(sorted(set(files)))
    tests: set[str] = set()
    for file in plan.files:
        area = area_of(file)
        if area is None:
            plan.unknown.append(file)
            tests.update(ALL)
            continue
        tests.update(matching(area.tests))
        name = file.rpartition("/")[2]
        if file.startswith("tests/") and name.startswith("test_") and exists(file):
            tests.add(file)
    plan.tests = sorted(test for test in tests if not any(_within(test, one) for one in tests))
    return plan


def _within(test: str, folder: str) -> bool:
    return test.startswith(folder + "/")


# ------------------------------------------------------------------------------------ git


def git(*arguments: str) -> str | None:
    """What git prints; ``None`` where it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise CheckError("git is not installed: install it, or name the files: FILES=...") from None
    return done.stdout if done.returncode == 0 else None


def changed_files(base: str | None = None) -> tuple[list[str], str]:
    """The files that changed, and since when, in words."""
    if git("rev-parse", "--show-toplevel") is None:
        raise CheckError(
            "this is no checkout of git, so what changed is not known: run `make test`, or name "
            "the files: make check FILES='docs/serving.md'"
        )
    if git("rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        raise CheckError("there is no commit yet to compare with: commit first, or run `make test`")
    names = [base] if base else [name for name in BASES if git("rev-parse", "--verify", "-q", name)]
    if not names:
        raise CheckError(
            f"there is none of the branches {', '.join(BASES)} to compare with: "
            "name one, make check BASE=BRANCH"
        )
    merge_base = git("merge-base", "HEAD", names[0])
    if merge_base is None:
        raise CheckError(
            f"HEAD has no merge base with {names[0]}: fetch its history, or name another branch, "
            "make check BASE=BRANCH"
        )
    since = merge_base.strip()
    tracked = git("diff", "--name-only", "--no-renames", "-z", since) or ""
    new = git("ls-files", "--others", "--exclude-standard", "-z") or ""
    return [name for name in (tracked + new).split("\0") if name], f"{names[0]} ({since[:9]})"


# ------------------------------------------------------------------------------------ steps


@dataclass(frozen=True)
class Step:
    name: str
    command: tuple[str, ...]
    advice: str


def steps_of(plan: Plan, workers: str) -> list[Step]:
    """What is run, cheapest first."""
    steps = []
    if plan.python:
        mend = "`make format` mends most of it"
        steps.append(
            Step("ruff", (sys.executable, "-m", "ruff", "check", "-q", *plan.python), mend)
        )
        steps.append(
            Step(
                "format",
                (sys.executable, "-m", "ruff", "format", "-q", "--check", *plan.python),
                mend,
            )
        )
    if plan.touches("python/tokfold/", "pyproject.toml"):
        steps.append(Step("types", (sys.executable, "-m", "mypy"), "mend the types"))
    if plan.rust:
        cargo = ("cargo", "clippy", "--locked", "--workspace", "--all-targets")
        steps.append(Step("rustfmt", ("cargo", "fmt", "--check"), "`make format` mends it"))
        steps.append(Step("clippy", (*cargo, "--", "-D", "warnings"), "mend what it names"))
    crates = crates_of(plan)
    if crates:
        packages = [word for crate in crates for word in ("-p", crate)]
        command = ("cargo", "test", "--locked", "-q", *packages)
        steps.append(Step("Rust tests", command, "`make test-rust` runs them alone"))
    if plan.tests:
        options = (
            ("-n", workers, "--dist", "worksteal", "--timeout", "900", "-q")
            if workers != "0"
            else ("-q",)
        )
        command = (sys.executable, "-m", "pytest", *options, *plan.tests)
        steps.append(Step("Python tests", command, "run the file alone: pytest FILE -x"))
    return steps


def crates_of(plan: Plan) -> list[str]:
    """The crates with tests of their own that rest on what changed."""
    if plan.touches("rust/core/", "Cargo."):
        return list(CRATES.values())
    return [crate for folder, crate in CRATES.items() if plan.touches(folder)]


def left_of(plan: Plan) -> list[str]:
    """What ``make test`` runs besides."""
    left = []
    if plan.tests != list(ALL):
        left.append("the other Python tests")
    if crates_of(plan) != list(CRATES.values()):
        left.append("the Rust tests" if not crates_of(plan) else "the other Rust tests")
    left.append("the replay of the fuzz corpus")
    left.append("the wheel")
    return left


def extension_is_stale() -> bool:
    built = sorted((ROOT / "python" / "tokfold").glob("_core*.so"))
    if not built:
        return True
    sources = [*(ROOT / "rust").rglob("*.rs"), *(ROOT / "rust").rglob("Cargo.toml")]
    sources += [ROOT / "Cargo.toml", ROOT / "Cargo.lock", ROOT / ".cargo" / "config.toml"]
    newest = max(path.stat().st_mtime for path in sources if "/target/" not in path.as_posix())
    return built[0].stat().st_mtime < newest


def build_extension() -> None:
    """The extension as the unit tests of the core are compiled: most is shared with them."""
    command = ["cargo", "build", "--locked", "--profile", "test", "-p", "tokfold-python"]
    if subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode:
        raise CheckError("the extension does not compile: mend what cargo names above")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug"
    library = next(
        path for name in ("lib_core.so", "lib_core.dylib") if (path := target / name).exists()
    )
    place = ROOT / "python" / "tokfold" / "_core.abi3.so"
    aside = place.with_suffix(".new")
    shutil.copy(library, aside)
    os.replace(aside, place)  # the old one may be mapped
    for stamp in (Path(sys.prefix) / ".stamps").glob("extension-*"):
        os.utime(stamp, (0, 0))  # `make test` is to install its own again


def run(plan: Plan, workers: str) -> int:
    """Run all steps, failed or not; the exit status."""
    failed = []
    for step in steps_of(plan, workers):
        began = time.monotonic()
        if step.name == "Python tests" and extension_is_stale():
            print("check: building the extension", flush=True)
            build_extension()
        print(f"check: {step.name}", flush=True)
        done = subprocess.run(step.command, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
        said = f"{time.monotonic() - began:.0f} s"
        if done.returncode == 5 and step.name == "Python tests":
            said += ", no test was collected"
        elif done.returncode:
            failed.append(f"{step.name}: {step.advice}")
            said += ", failed"
        print(f"check: {step.name}: {said}", flush=True)
    for line in failed:
        print(f"check: failed: {line}")
    return 1 if failed else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Lints and tests of what changed since the merge base with the main branch."
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="instead of what git names")
    parser.add_argument("--base", help=f"the branch to compare with; {' or '.join(BASES)}")
    parser.add_argument("--list", action="store_true", help="say what would run, and end")
    parser.add_argument("--workers", default="2", help="processes that the Python tests share")
    options = parser.parse_args(arguments)
    try:
        files, since = (options.files, "named") if options.files else changed_files(options.base)
        plan = plan_of(files)
        where = "" if options.files else f" since {since}"
        print(f"check: {len(plan.files)} files changed{where}")
        if not plan.files:
            print("check: nothing to run; `make test` runs everything")
            return 0
        for name in plan.unknown:
            print(f"check: {name} is of no area in tests/support/check.py: all tests run")
        print("check: runs: " + (", ".join(s.name for s in steps_of(plan, "0")) or "nothing"))
        if plan.tests:
            print("check: Python tests: " + " ".join(plan.tests))
        print("check: left to `make test`: " + ", ".join(left_of(plan)), flush=True)
        return 0 if options.list else run(plan, options.workers)
    except CheckError as error:
        print(f"check: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ncheck: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
