"""The wheel, installed beside numpy alone: small, complete, and light to import.

Takes the wheel of the folder `TOKFOLD_WHEEL_DIR`, or of `dist/`; `make test` builds it. Needs the
package index, for numpy.
"""

from __future__ import annotations

import json
import os
import re
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from support import processes
from tokfold._tags.reading import STYLES
from tokfold.structural_tags import families

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("TOKFOLD_WHEEL_DIR", ROOT / "dist"))
WHEELS = sorted(FOLDER.glob("tokfold-*.whl"))
MAX_BYTES = 6_000_000 if FOLDER.name == "suite-dist" else 5_000_000
"""One compiled for the tests has the core's assertions, and no link-time optimization."""
LABORATORY = "tokfold/laboratory/"
"""A distribution of its own."""
HEAVY = ("torch", "xgrammar", "transformers", "tokenizers", "tiktoken", "typer", "rich")

pytestmark = pytest.mark.skipif(
    not WHEELS and "TOKFOLD_WHEEL_DIR" not in os.environ,
    reason="there is no wheel in dist: make wheel",
)

FOLD = """
import json, sys
import tokfold
grammar = tokfold.Grammar.from_ebnf('root ::= "[" [0-9]+ ("," [0-9]+)* "]"')
tokens = [b"[", b"]", b",", b"1", b"22", b"x", b",3", b"</s>"]
vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[7])
classes = tokfold.compile_classes(grammar, vocabulary)
classes.save("lists.tokfold")
again = tokfold.TokenClasses.load("lists.tokfold")
print(json.dumps({
    "equal": again == classes,
    "class_of": classes.class_of.tolist(),
    "file": tokfold.__file__,
    "modules": sorted(name for name in sys.modules if "." not in name),
    "version": tokfold.__version__,
}))
"""

DOORS = """
import json, sys
import tokfold
from tokfold import Grammar, structural_tags
tokens = [bytes([byte]) for byte in range(256)]
vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[256])
schema = {
    "type": "object",
    "properties": {"day": {"format": "date"}, "name": {"type": "string", "pattern": "^[a-z]+$"}},
    "required": ["name"],
}
grammars = {
    "schema": (Grammar.from_json_schema(schema), '{"day": "2024-02-29", "name": "ada"}'),
    "pattern": (Grammar.from_regex(r"(?!if$)\\p{Ll}{1,8}"), "iffy"),
    "lark": (Grammar.from_lark('start: NAME ("," NAME)*\\nNAME: /[a-z]+/'), "a,bc"),
    "texts": (Grammar.choices(["yes", "no"]) & ~Grammar.choices(["no"]), "yes"),
    "macros": (Grammar.from_ebnf('root ::= Regex("[0-9]{2,40}") Substring("a", "b")'), "42ab"),
}
dsml = "\uff5cDSML\uff5c"
calls = {
    "json": '{"name": "ada"}',
    "qwen_xml": "<parameter=name>ada</parameter>",
    "minimax_xml": '<parameter name="name">ada</parameter>',
    "minimax_m3_xml": "]<]minimax[>[<name>ada]<]minimax[>[</name>",
    "deepseek_xml": f'<{dsml}parameter name="name" string="true">ada</{dsml}parameter>',
    "deepseek_v4_1_xml": f'<{dsml} parameter name="name" string="true">ada</{dsml} parameter>',
    "glm_xml": "<arg_key>name</arg_key><arg_value>ada</arg_value>",
    "cohere_xml": '<cofl:value name="name" type="raw">ada</cofl:value>',
    "kimi_k3_xml": '<|open|>argument key="name" type="string"<|sep|>ada<|close|>argument<|sep|>',
}
for style, call in calls.items():
    content = {"type": "json_schema", "style": style, "json_schema": schema, "excludes": ["!"]}
    pattern = {"type": "regex", "pattern": "[0-9]+"}
    inside = {"type": "sequence", "elements": [content, pattern]}
    tags = [{"type": "tag", "begin": "<call>", "content": inside, "end": "</call>"}]
    tag = {"type": "triggered_tags", "triggers": ["<call"], "tags": tags}
    grammars[style] = (Grammar.from_structural_tag({"format": tag}), f"I do: <call>{call}7</call>.")
tools = [{"type": "function", "function": {"name": "greet", "parameters": schema}}]
for family in structural_tags.families():
    tag = structural_tags.for_model(family, tools, reasoning=False)
    text = {"harmony": "<|channel|>final<|message|>Hi.<|end|>", "minimax": "\\n</think>\\n\\nHi."}
    text["kimi_k3"] = "Hi.<|close|>response<|sep|><|close|>message<|sep|>"
    text["command_a"] = "<|START_TEXT|>Hi.<|END_TEXT|>"
    text["command_r7b"] = "<|START_RESPONSE|>Hi.<|END_RESPONSE|>"
    grammars[family] = (Grammar.from_structural_tag(tag), text.get(family, "Hi."))
taken = {}
for name, (grammar, text) in grammars.items():
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary))
    taken[name] = matcher.accept_string(text) and matcher.is_accepting
print(json.dumps({"taken": taken, "modules": sorted(n for n in sys.modules if "." not in n)}))
"""


COMPARE = """
from tokfold import Grammar
from tokfold.laboratory.equivalence import compare
one, other = Grammar.from_regex("a|ab"), Grammar.from_regex("ab?")
print(compare(one, other).kind)
"""


@pytest.fixture(scope="module")
def wheel() -> Path:
    assert len(WHEELS) == 1, f"one wheel is expected in {FOLDER}, not {WHEELS}"
    return WHEELS[0]


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of a new environment that holds the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("empty")
    processes.run([sys.executable, "-m", "venv", str(folder)], check=True, text=False)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    install = [str(programs / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    processes.run(install, check=True, text=False)
    return programs


def call(environment: Path, program: str, *arguments: str, cwd: Path) -> CompletedProcess[str]:
    """Run a program of the environment that knows nothing of the checkout."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(environment / program), *arguments]
    return processes.run(command, cwd=cwd, env=clean)


class TestFile:
    def test_one_wheel_serves_python_3_11_and_later(self, wheel: Path) -> None:
        """But for an interpreter without the GIL, which has no stable ABI before 3.15."""
        tags = "cp311-abi3"
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            version = "cp{}{}".format(*sys.version_info)
            tags = f"{version}-{version}t"
        assert re.fullmatch(rf"tokfold-[^-]+-{tags}-[\w.]+\.whl", wheel.name)

    def test_it_is_small(self, wheel: Path) -> None:
        assert wheel.stat().st_size < MAX_BYTES

    @pytest.mark.parametrize(
        "name",
        [
            "py.typed",
            "_core.pyi",
            "cli/data/cpp.gbnf",
            "cli/data/cpp.txt",
            "xgrammar/__init__.py",
            "chart_gpu/chart.cu",
        ],
    )
    def test_it_holds_the_data_of_the_package(self, names: list[str], name: str) -> None:
        assert f"tokfold/{name}" in names

    def test_it_holds_every_module(self, names: list[str]) -> None:
        package = ROOT / "python"
        modules = [path.relative_to(package).as_posix() for path in package.rglob("*.py")]
        apart = {name for name in modules if name.startswith(LABORATORY)}
        assert len(apart) > 80
        assert [name for name in modules if name not in {*names, *apart}] == []

    def test_it_holds_no_laboratory(self, names: list[str]) -> None:
        assert [name for name in names if name.startswith(LABORATORY)] == []

    def test_it_holds_one_core_and_the_licence(self, names: list[str]) -> None:
        assert len([name for name in names if re.search(r"\.(so|pyd)$", name)]) == 1
        assert [name for name in names if name.endswith("/licenses/LICENSE")]

    def test_it_holds_nothing_else(self, names: list[str]) -> None:
        assert [name for name in names if not re.match(r"tokfold(-[^/]+\.dist-info)?/", name)] == []
        assert [name for name in names if "__pycache__" in name] == []

    def test_it_requires_numpy_alone(self, wheel: Path, names: list[str]) -> None:
        (name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        with zipfile.ZipFile(wheel) as archive:
            message = metadata.PathDistribution(zipfile.Path(archive, name).parent).metadata
        required = [line for line in message.get_all("Requires-Dist") or [] if "extra" not in line]
        assert [re.match(r"[\w-]+", line)[0] for line in required] == ["numpy"]


class TestInstalled:
    def test_classes(self, environment: Path, tmp_path: Path) -> None:
        result = call(environment, "python", "-c", FOLD, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        assert Path(found["file"]).is_relative_to(environment.parent)
        assert found["equal"]
        # "1" and "22" are one class; "x" is in no list
        assert found["class_of"] == [0, 1, 2, 3, 3, -1, 4, 5]
        assert [name for name in HEAVY if name in found["modules"]] == []

    def test_every_door_of_text(self, environment: Path, tmp_path: Path) -> None:
        result = call(environment, "python", "-c", DOORS, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        found = json.loads(result.stdout)
        doors = ("schema", "pattern", "lark", "texts", "macros")
        assert found["taken"] == dict.fromkeys((*doors, *STYLES, *families()), True)
        assert [name for name in HEAVY if name in found["modules"]] == []

    def test_versions_agree(self, environment: Path, tmp_path: Path) -> None:
        code = "import tokfold; from importlib.metadata import version; "
        code += "assert tokfold.__version__ == version('tokfold')"
        result = call(environment, "python", "-c", code, cwd=tmp_path)
        assert result.returncode == 0, result.stderr

    def test_the_command_line_names_its_extra(self, environment: Path, tmp_path: Path) -> None:
        result = call(environment, "tokfold", "demo", cwd=tmp_path)
        assert result.returncode == 2
        assert 'pip install ".[cli]" in a checkout of tokfold' in result.stderr
        assert "Traceback" not in result.stderr

    def test_the_laboratory_comes_beside_it(self, environment: Path, tmp_path: Path) -> None:
        missing = call(environment, "python", "-c", "import tokfold.laboratory", cwd=tmp_path)
        assert "No module named 'tokfold.laboratory'" in missing.stderr
        build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        build += ["--wheel-dir", str(tmp_path), str(ROOT / "laboratory")]
        processes.run(build, check=True, text=False)
        (laboratory,) = tmp_path.glob("tokfold_laboratory-*.whl")
        with zipfile.ZipFile(laboratory) as archive:
            held = [name for name in archive.namelist() if not name.startswith(LABORATORY)]
        assert [name for name in held if ".dist-info/" not in name] == []
        python = str(environment / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps", str(laboratory)]
        processes.run(install, check=True, text=False)
        result = call(environment, "python", "-c", COMPARE, cwd=tmp_path)
        assert (result.returncode, result.stdout.strip()) == (0, "proved"), result.stderr
        remove = [python, "-m", "pip", "uninstall", "--quiet", "--yes", "tokfold-laboratory"]
        processes.run(remove, check=True, text=False)
        assert call(environment, "python", "-c", FOLD, cwd=tmp_path).returncode == 0

    @pytest.mark.parametrize(
        ("code", "extra"),
        [
            ("from tokfold import xgrammar", "xgrammar"),
            ("import tokfold.transformers", "transformers"),
        ],
    )
    def test_what_is_missing_names_its_extra(
        self, environment: Path, tmp_path: Path, code: str, extra: str
    ) -> None:
        result = call(environment, "python", "-c", code, cwd=tmp_path)
        assert f'pip install ".[{extra}]" in a checkout of tokfold' in result.stderr
        assert "MissingExtraError" in result.stderr
