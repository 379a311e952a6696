"""`make check`: which tests belong to a file, what it runs, and what it says where it cannot."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support import check, processes
from support.processes import PIPE

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "tests" / "support" / "check.py"
GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


def tracked() -> list[str]:
    if GIT is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout of git")
    return str(processes.run([GIT, "-C", ROOT, "ls-files"], check=True).stdout).split()


class TestAreas:
    @pytest.mark.parametrize("area", check.AREAS, ids=lambda area: area.prefix)
    def test_it_exists_and_so_do_its_tests(self, area: check.Area) -> None:
        assert (ROOT / area.prefix).exists()
        assert (ROOT / area.prefix).is_dir() == area.prefix.endswith("/")
        for pattern in area.tests:
            assert check.matching([pattern]), pattern

    def test_none_is_hidden_by_one_before_it(self) -> None:
        prefixes = [area.prefix for area in check.AREAS]
        assert len(set(prefixes)) == len(prefixes)
        for place, prefix in enumerate(prefixes):
            assert not any(
                prefix.startswith(before) for before in prefixes[:place] if before.endswith("/")
            ), prefix

    def test_each_file_of_the_project_has_one(self) -> None:
        assert [file for file in tracked() if check.area_of(file) is None] == []

    def test_each_folder_of_tests_belongs_to_one(self) -> None:
        named = {test for area in check.AREAS for test in check.matching(area.tests)}
        for test in sorted((ROOT / "tests").rglob("test_*.py")):
            name = test.relative_to(ROOT).as_posix()
            owners = {one for one in named if one == name or name.startswith(one + "/")}
            assert owners - set(check.ALL), name


class TestPlan:
    def names(self, *files: str) -> list[str]:
        return [step.name for step in check.steps_of(check.plan_of(files), "2")]

    def test_a_folder_has_its_tests_and_its_languages_lints(self) -> None:
        assert check.plan_of(["rust/core/src/lark/mod.rs"]).tests == sorted(check.LARK)
        assert self.names("rust/core/src/lark/mod.rs") == [
            "rustfmt",
            "clippy",
            "Rust tests",
            "Python tests",
        ]
        steps = check.steps_of(check.plan_of(["rust/mask_store/src/lib.rs"]), "2")
        commands = [step.command for step in steps if step.name == "Rust tests"]
        assert commands == [("cargo", "test", "--locked", "-q", "-p", "tokfold-mask-store")]
        assert self.names("python/tokfold/mask_store/__init__.py") == [
            "ruff",
            "format",
            "types",
            "Python tests",
        ]

    def test_pages_have_no_lints(self) -> None:
        assert self.names("docs/serving.md") == ["Python tests"]
        assert self.names("CHANGELOG.md") == []

    def test_what_all_rests_on_has_all_tests(self) -> None:
        assert check.plan_of(["rust/core/src/budget.rs"]).tests == ["tests"]
        assert check.plan_of(["Cargo.lock", "docs/serving.md"]).tests == ["tests"]

    def test_a_test_that_changed_is_run_itself(self) -> None:
        assert check.plan_of(["tests/project/test_check.py"]).tests == [
            "tests/project/test_check.py"
        ]
        assert check.plan_of(["tests/project/test_that_is_gone.py"]).tests == []

    def test_an_unknown_file_has_all_tests_and_is_named(self) -> None:
        plan = check.plan_of(["novelty/file.zig"])
        assert plan.unknown == ["novelty/file.zig"]
        assert plan.tests == ["tests"]

    def test_what_is_left_is_said(self) -> None:
        assert "the other Python tests" in check.left_of(check.plan_of(["docs/serving.md"]))
        assert "the other Python tests" not in check.left_of(check.plan_of(["Cargo.lock"]))


def clone_of_the_tool(folder: Path) -> Path:
    """The tool in a project of its own, which has nothing but it."""
    tool = folder / "tests" / "support" / "check.py"
    tool.parent.mkdir(parents=True)
    shutil.copy(CHECK, tool)
    return tool


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    processes.run(["git", "-C", folder, *who, *arguments], check=True, env=outside())


def outside() -> dict[str, str]:
    """An environment in which git looks for no repository but that of its folder."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**ours, "GIT_CEILING_DIRECTORIES": "/", "GIT_CONFIG_GLOBAL": os.devnull}


def ask(tool: Path, *arguments: str, **options: object) -> tuple[int, str, str]:
    done = processes.run([sys.executable, tool, *arguments], env=outside(), **options)
    return done.returncode, done.stdout, done.stderr


def the_line(done: tuple[int, str, str]) -> str:
    """The one line of an error."""
    code, out, err = done
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("check: ")
    return err


@needs_git
class TestWithoutABase:
    def test_outside_a_checkout(self, tmp_path: Path) -> None:
        said = the_line(ask(clone_of_the_tool(tmp_path)))
        assert "no checkout of git" in said
        assert "make test" in said

    def test_without_git(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        done = processes.run([sys.executable, tool], env={"PATH": str(tmp_path)})
        said = the_line((done.returncode, done.stdout, done.stderr))
        assert "git is not installed" in said

    def test_before_the_first_commit(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        git(tmp_path, "init", "-q", "-b", "main")
        assert "no commit yet" in the_line(ask(tool))

    def test_without_a_main_branch(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        git(tmp_path, "init", "-q", "-b", "work")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
        assert "make check BASE=BRANCH" in the_line(ask(tool))
        assert "no merge base with nowhere" in the_line(ask(tool, "--base", "nowhere"))

    def test_without_a_merge_base(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        git(tmp_path, "init", "-q", "-b", "main")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "one")
        git(tmp_path, "checkout", "-q", "--orphan", "work")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", "another root")
        assert "no merge base with main" in the_line(ask(tool))

    def test_a_detached_head_is_compared_as_any(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        git(tmp_path, "init", "-q", "-b", "main")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", "one")
        git(tmp_path, "checkout", "-q", "--detach")
        (tmp_path / "CHANGELOG.md").write_text("new\n")
        (tmp_path / "with a space.txt").write_text("new\n")
        code, out, err = ask(tool, "--list")
        assert (code, err) == (0, "")
        assert "2 files changed since main" in out
        assert "with a space.txt is of no area" in out
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", "two")
        assert "2 files changed since main" in ask(tool, "--list")[1]


@needs_git
class TestRun:
    def test_nothing_changed(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        git(tmp_path, "init", "-q", "-b", "main")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", "one")
        code, out, err = ask(tool)
        assert (code, err) == (0, "")
        assert "0 files changed" in out
        assert "nothing to run" in out

    def test_it_says_what_runs_and_what_is_left(self) -> None:
        code, out, err = ask(CHECK, "--list", "docs/lark.md")
        assert (code, err) == (0, "")
        assert "runs: Python tests" in out
        assert "tests/pages/test_pages.py" in out
        assert "left to `make test`: the other Python tests, the Rust tests" in out

    def test_a_failure_fails_and_says_what_to_do(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        (tmp_path / "benches").mkdir()
        (tmp_path / "benches" / "bad.py").write_text("import os\nimport sys\nprint( 1)\n")
        (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
        code, out, _ = ask(tool, "benches/bad.py")
        assert code == 1
        assert "check: failed: ruff: `make format` mends most of it" in out
        assert "check: failed: format" in out

    @pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is not installed")
    def test_a_core_that_does_not_compile(self, tmp_path: Path) -> None:
        tool = clone_of_the_tool(tmp_path)
        (tmp_path / "Cargo.toml").write_text("[workspace]\nmembers = ['nowhere']\n")
        (tmp_path / "python" / "tokfold").mkdir(parents=True)
        (tmp_path / "tests" / "grammar").mkdir()
        (tmp_path / "tests" / "grammar" / "test_sources.py").write_text("def test(): pass\n")
        with processes.start(
            [sys.executable, tool, "rust/core/src/lark/mod.rs"], env=outside(), stdin=PIPE
        ) as child:
            _, err = child.communicate(timeout=processes.DEADLINE_S)
        assert child.returncode == 2
        assert "check: the extension does not compile: mend what cargo names above" in err
