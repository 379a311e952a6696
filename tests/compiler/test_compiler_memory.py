"""The memory of a ``GrammarCompiler``: bytes, files, limits, and child processes."""

from __future__ import annotations

import importlib
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytest.importorskip("tokfold._core")

import tokfold
from compiler.samples import (
    SLOW,
    STRING,
    TOKENS,
    compiler_of,
    row_of,
    takes,
    use,
)
from support.forks import exit_code
from support.processes import DEADLINE_S
from support.script_runner import child, output
from tokfold import GrammarCompiler
from tokfold.errors import CacheWarning


class TestBytes:
    def test_the_sum_is_bounded(self):
        one = compiler_of().compile_grammar('root ::= "a"').num_bytes
        compiler = compiler_of(max_bytes=5 * one)
        for letter in "abcdefghij":
            compiler.compile_grammar(f'root ::= "{letter}"')
        found = compiler.statistics()
        assert 2 <= found.grammars <= 5
        assert one < found.bytes <= 5 * one
        assert found.evicted == 10 - found.grammars
        before = found.misses
        compiler.compile_grammar('root ::= "j"')
        assert compiler.statistics().misses == before, "the last one is held"

    def test_none_is_no_bound(self):
        compiler = compiler_of(max_bytes=None)
        made = [compiler.compile_grammar(f'root ::= "{letter}"') for letter in "abc"]
        found = compiler.statistics()
        assert (found.grammars, found.bytes) == (3, sum(one.num_bytes for one in made))

    def test_one_that_is_too_large_leaves_the_others(self):
        small = 'root ::= "a"'
        compiler = compiler_of(max_bytes=20 * compiler_of().compile_grammar(small).num_bytes)
        held = compiler.compile_grammar(small)
        large = compiler.compile_grammar(f'root ::= "{"b" * 50_000}"')
        assert large.num_bytes > compiler.max_bytes
        assert compiler.compile_grammar(small) is held
        assert compiler.statistics().grammars == 1
        assert compiler.statistics().evicted == 1
        assert takes(large, "b" * 50_000)

    def test_a_grammar_that_grows_is_looked_at_when_it_is_asked_for(self):
        compiler = compiler_of(max_bytes=None)
        text = STRING.format(key="a")
        compiled = compiler.compile_grammar(text)
        before = compiler.statistics().bytes
        use(compiler, [text], 'a"')
        compiler.compile_grammar(text)
        assert compiler.statistics().bytes == compiled.num_bytes > before

    def test_all_are_looked_at_from_time_to_time(self, monkeypatch):
        """Not at each request: a hundred of them look a few hundred times, not ten thousand."""
        compiler = compiler_of(max_bytes=None)
        made = [compiler.compile_grammar(f'root ::= "{n}" [^x]* "x"') for n in range(100)]
        looks = 0
        real = tokfold.CompiledGrammar.num_bytes.fget

        def num_bytes(self):
            nonlocal looks
            looks += 1
            return real(self)

        monkeypatch.setattr(tokfold.CompiledGrammar, "num_bytes", property(num_bytes))
        grown = tokfold.Matcher(made[7])
        assert grown.accept_string("7a")
        row_of(grown)
        for _ in range(100):
            compiler.compile_grammar('root ::= "0" [^x]* "x"')
        assert looks <= 300
        assert compiler.statistics().bytes == sum(one.num_bytes for one in made)

    def test_a_hit_makes_room_too(self):
        """What the grammar of a request grew by is taken from those not asked for longest."""
        compiler = compiler_of()
        texts = ['root ::= "a"', STRING.format(key="b")]
        other, growing = (compiler.compile_grammar(text) for text in texts)
        before = other.num_bytes + growing.num_bytes
        use(compiler, texts[1:], 'b"')
        compiler.max_bytes = growing.num_bytes
        assert compiler.statistics().bytes == before <= compiler.max_bytes
        assert compiler.compile_grammar(texts[1]) is growing
        assert compiler.statistics().grammars == 1
        assert compiler.statistics().bytes == growing.num_bytes


def pool_file(folder: Path) -> Path:
    (path,) = folder.glob("*-mask-pool.tokfold")
    return path


class TestFolder:
    def test_there_and_back(self, tmp_path):
        with compiler_of(cache_dir=tmp_path / "new" / "folder") as compiler:
            use(compiler, [STRING.format(key="a")], 'a"')
            held = compiler.pool.counters()["entries"]
        assert compiler.statistics().grammars == 0
        assert compiler.pool.counters()["entries"] == 0
        assert (tmp_path / "new" / "folder").stat().st_mode & 0o077 == 0
        again = compiler_of(cache_dir=tmp_path / "new" / "folder")
        assert again.pool.counters()["entries"] == held
        use(again, [STRING.format(key="b")], 'b"')
        assert again.pool.counters()["hits"] > 0
        compiler.compile_grammar('root ::= "a"')  # a closed one goes on

    def test_another_process(self, tmp_path):
        compiler = compiler_of(cache_dir=tmp_path)
        text = STRING.format(key="a")
        use(compiler, [text], 'a"')
        expected = row_of(tokfold.Matcher(compiler.compile_grammar(text))).tobytes().hex()
        compiler.close()
        script = """
            sys.path.insert(0, sys.argv[2])
            import tokfold
            from pathlib import Path
            from compiler.samples import *
            from support.forks import exit_code
            from support.processes import DEADLINE_S
            compiler = compiler_of(cache_dir=sys.argv[1])
            print(compiler.pool.counters()["entries"])
            use(compiler, [STRING.format(key="a")], 'a"')
            print(compiler.pool.counters()["hits"], compiler.pool.counters()["misses"])
            use(compiler, ['root ::= [^x"]* "y"'])
            compiled = compiler.compile_grammar(STRING.format(key="a"))
            print(row_of(tokfold.Matcher(compiled)).tobytes().hex())
            compiler.close()
        """
        lines = output(child(script, tmp_path, Path(__file__).parents[1])).split()
        assert int(lines[0]) > 0
        assert int(lines[1]) > 0
        assert int(lines[2]) == 0
        assert lines[3] == expected
        after = compiler_of(cache_dir=tmp_path)
        assert after.pool.counters()["entries"] > int(lines[0])

    def test_what_others_saved_meanwhile_is_kept(self, tmp_path):
        one, two = (compiler_of(cache_dir=tmp_path) for _ in range(2))
        use(one, ['root ::= [^a"]* "a"'])
        use(two, ['root ::= [^b"]* "b"'])
        one.save()
        two.save()
        held = one.pool.counters()["entries"]
        assert compiler_of(cache_dir=tmp_path).pool.counters()["entries"] == 2 * held

    def test_a_full_pool_saves_what_was_used_last(self, tmp_path):
        """The file of long ago takes up the whole bound; the work of this process is newer."""
        old = [f'root ::= [^{a}{b}"]* "{a}"' for a in "abcdefgh" for b in "0123"]
        new = [f'root ::= [^{a}{b}"]* "{a}"' for a in "ijklmnop" for b in "0123"]
        probe = compiler_of()
        use(probe, old)
        compiler = compiler_of(cache_dir=tmp_path, max_pool_bytes=probe.pool.counters()["bytes"])
        use(compiler, old)
        compiler.save()
        use(compiler, new)
        compiler.save()
        for found in (compiler, compiler_of(cache_dir=tmp_path, max_pool_bytes=1 << 20)):
            before = found.pool.counters()["hits"]
            plain = compiler_of()
            plain.pool = found.pool
            use(plain, new[16:])
            assert found.pool.counters()["hits"] - before >= 12

    def test_vocabularies_have_files_of_their_own(self, tmp_path):
        compiler_of(cache_dir=tmp_path).close()
        other = tokfold.Vocabulary(TOKENS)
        GrammarCompiler(other, cache_dir=tmp_path, seed=False).close()
        assert len(list(tmp_path.glob("*-mask-pool.tokfold"))) == 2

    @pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other vocabulary", "version"])
    def test_a_damaged_file_is_named_and_made_again(self, tmp_path, damage, monkeypatch):
        compiler = compiler_of(cache_dir=tmp_path)
        use(compiler, [STRING.format(key="a")], 'a"')
        compiler.close()
        path = pool_file(tmp_path)
        data = path.read_bytes()
        match damage:
            case "flip":
                path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
            case "cut":
                path.write_bytes(data[:-1])
            case "empty":
                path.write_bytes(b"")
            case "other vocabulary":
                tokfold.MaskPool(tokfold.Vocabulary(TOKENS)).save(path)
            case "version":
                monkeypatch.setattr("tokfold.pool.ALGORITHM", -1)
        with pytest.warns(CacheWarning, match="masks are made again") as caught:
            again = compiler_of(cache_dir=tmp_path)
        assert str(path) in str(caught[0].message)
        assert again.pool.counters()["entries"] == 0
        use(again, [STRING.format(key="a")], 'a"')
        with pytest.warns(CacheWarning):
            again.close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compiler_of(cache_dir=tmp_path).pool.counters()["entries"] > 0

    def test_nothing_can_be_written(self, tmp_path):
        """A warning, and what is held is let go all the same."""
        compiler = compiler_of(cache_dir=tmp_path)
        use(compiler, [STRING.format(key="a")], 'a"')
        compiler._pool_path.mkdir()
        with pytest.warns(CacheWarning), pytest.raises(tokfold.ArtifactError):
            compiler.save()
        with pytest.warns(CacheWarning) as caught:
            compiler.close()
        assert any("were not saved" in str(warning.message) for warning in caught)
        assert compiler.statistics().grammars == 0

    def test_the_folder_of_the_user_by_its_short_name(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        for folder in ("~", "~/cache", Path("~/cache")):
            with pytest.raises(ValueError, match="expanduser"):
                compiler_of(cache_dir=folder)
            with pytest.raises(ValueError, match="expanduser"):
                tokfold.CompileOptions(cache_dir=folder)
        assert list(tmp_path.iterdir()) == []
        for folder in ("~cache", "."):  # names like any other
            compiler_of(cache_dir=folder).close()

    def test_a_file_in_place_of_the_folder(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(tokfold.ArtifactError, match=r"/file: not a folder"):
            compiler_of(cache_dir=tmp_path / "file")
        compiler = compiler_of(cache_dir=tmp_path / "late")
        (tmp_path / "late").write_bytes(b"")
        with pytest.warns(CacheWarning, match="is no folder any more"):
            assert takes(compiler.compile_grammar('root ::= "a"'), "a")
        with pytest.warns(CacheWarning, match="were not saved"):
            compiler.close()

    def test_without_a_folder(self):
        with compiler_of() as compiler:
            with pytest.raises(ValueError, match="no cache_dir"):
                compiler.save()
            compiler.compile_grammar('root ::= "a"')
        assert compiler.statistics().grammars == 0

    def test_an_error_inside_is_not_swallowed(self, tmp_path):
        with pytest.raises(ZeroDivisionError), compiler_of(cache_dir=tmp_path):
            raise ZeroDivisionError
        assert pool_file(tmp_path).exists()

    def test_threads_that_save_at_once(self, tmp_path):
        compilers = [compiler_of(cache_dir=tmp_path) for _ in range(4)]

        def work(number: int) -> None:
            for step in range(10):
                use(compilers[number], [f'root ::= [^{"abcd"[number]}{step}"]* "x"'])
                compilers[number].save()

        with ThreadPoolExecutor(4) as threads, warnings.catch_warnings():
            warnings.simplefilter("error")
            list(threads.map(work, range(4)))
        assert compiler_of(cache_dir=tmp_path).pool.counters()["entries"] >= 10
        assert [path.name for path in tmp_path.iterdir()] == [pool_file(tmp_path).name]


class TestLimits:
    @pytest.mark.parametrize(
        ("limit", "value", "text"),
        [
            ("max_grammar_bytes", 5, 'root ::= "a"'),
            ("max_rules", 1, 'root ::= x\nx ::= "a"'),
            ("max_nesting", 2, 'root ::= (((("a" "b"))))'),
            ("max_network_states", 3, 'root ::= "abcdef"'),
        ],
    )
    def test_each_is_that_of_all_grammars(self, limit, value, text):
        compiler = compiler_of(limits=tokfold.Limits(**{limit: value}))
        for _ in range(2):
            with pytest.raises(tokfold.LimitExceededError) as caught:
                compiler.compile_grammar(text)
            assert caught.value.limit == limit
        found = compiler.statistics()
        assert (found.failures, found.misses, found.grammars) == (2, 2, 0)

    def test_masks(self):
        limits = tokfold.Limits(max_mask_work=1)
        compiler = compiler_of(limits=limits, seed=True)  # the seed is not bound by them
        compiled = compiler.compile_grammar('root ::= ([a-z] | "é" | [0-9] root root)+ "x"')
        assert compiled.limits is limits
        with pytest.raises(tokfold.LimitExceededError) as caught:
            row_of(tokfold.Matcher(compiled))
        assert caught.value.limit == "max_mask_work"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestFork:
    @pytest.mark.parametrize(
        "lock", ["_converters.conversion._stack_lock", "_serving.compiling._grammars_lock"]
    )
    def test_a_lock_of_a_thread_of_the_parent(self, lock):
        """A child process finds it free: nobody in it will let it go."""
        module, name = f"tokfold.{lock}".rsplit(".", 1)
        with getattr(importlib.import_module(module), name):
            assert (
                exit_code(
                    lambda: getattr(importlib.import_module(module), name).acquire(blocking=False)
                )
                == 0
            )

    def test_a_child_goes_on(self, tmp_path):
        """What was compiled is there, what is submitted is done, and the pool is saved."""
        script = """
            sys.path.insert(0, sys.argv[2])
            import tokfold
            from pathlib import Path
            from compiler.samples import *
            from support.forks import exit_code
            from support.processes import DEADLINE_S
            compiler = compiler_of(cache_dir=sys.argv[1], classes="auto")
            before = compiler.submit("grammar", STRING.format(key="a")).result(DEADLINE_S)
            expected = row_of(tokfold.Matcher(before)).tolist()
            def in_child():
                assert compiler.compile_grammar(STRING.format(key="a")) is before
                assert row_of(tokfold.Matcher(before)).tolist() == expected
                after = compiler.submit("grammar", 'root ::= [^x"]* "z"').result(DEADLINE_S)
                row_of(tokfold.Matcher(after))
                after.wait(DEADLINE_S)
                compiler.close()
                return True
            print(exit_code(in_child), len(list(Path(sys.argv[1]).glob("*mask-pool*"))))
        """
        tests = Path(__file__).parents[1]
        lines = output(child(script, tmp_path, tests, PYTHONWARNINGS="ignore")).split()
        assert lines == ["0", "1"]

    def test_a_child_does_not_wait_for_its_parents_threads(self, gate):
        """Neither for their slots, nor for those that wait in the queue."""
        compiler = compiler_of(max_compiles=1)
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            waiting = compiler.submit("grammar", 'root ::= "b"')

            def child() -> bool:
                gate.opened.set()
                compiler.compile_grammar(SLOW)
                compiler.compile_grammar('root ::= "b"')
                found = compiler.statistics()
                return (found.running, found.queued) == (0, 0)

            status = exit_code(child)
            gate.opened.set()
            slow.result(DEADLINE_S)
            waiting.result(DEADLINE_S)
        assert status == 0
