"""Build the site: the pages of the repository as they are, and the reference out of docstrings.

    python docs/build_site.py [FOLDER]

Pages keep their paths, so that a link leads to the same page here, on the site and in a forge.
What is built lies in FOLDER (``target/site``), the site itself in its ``html``. A warning ends the
build.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIED = (
    *("*.md", "LICENSE", "docs/**/*.md", "docs/**/*.svg"),
    *("grammars/**/*.md", "examples/**/*.py"),
)
"""What the site has: pages, and the files that they link to."""
REFERENCE = {
    "Grammars": ["Grammar", "Recognition", "recognize"],
    "Vocabularies": ["Vocabulary"],
    "Compiling": [
        "compile",
        "CompileOptions",
        "CompiledGrammar",
        "GrammarCost",
        "Shortest",
        "Limits",
        "Interrupt",
    ],
    "Matchers": [
        *("Matcher", "MatcherState", "HealedPrompt", "PromptMatcher"),
        *("Explanation", "allocate_bitmask", "allowed_tokens", "apply_token_bitmask_"),
    ],
    "Batches": [
        "fill_bitmask_batch",
        "fill_class_bitmask_batch",
        "accept_token_batch",
        "rollback_batch",
    ],
    "Servers": ["GrammarCompiler", "CompilerStatistics", "MaskPool"],
    "Classes": ["compile_classes", "TokenClasses", "Unfolder"],
}
"""Pages of the reference; errors and warnings have one of their own."""
MODULES = {
    "Structural tags": "tokfold.structural_tags",
    "transformers": "tokfold.transformers",
    "mlx-lm": "tokfold.mlx",
    "llama-cpp-python": "tokfold.llama_cpp",
    "PyTorch": "tokfold.torch",
    "SGLang": "tokfold.sglang",
    "vLLM": "tokfold.vllm",
}


def public_names() -> list[str]:
    """``tokfold.__all__``, read and not imported: the site needs no build of the core."""
    tree = ast.parse((ROOT / "python" / "tokfold" / "__init__.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    raise SystemExit("error: python/tokfold/__init__.py has no __all__")


def reference() -> dict[str, list[str]]:
    """The pages of the reference and what stands on each; every public name has a page."""
    pages = {title: [f"tokfold.{name}" for name in names] for title, names in REFERENCE.items()}
    named = {name for names in REFERENCE.values() for name in names}
    rest = [name for name in public_names() if name not in named]
    strange = [name for name in rest if not name.endswith(("Error", "Warning"))]
    if strange or named - set(public_names()):
        wrong = ", ".join(sorted({*strange, *(named - set(public_names()))}))
        raise SystemExit(f"error: REFERENCE of docs/build_site.py and tokfold.__all__: {wrong}")
    pages["Errors and warnings"] = [f"tokfold.{name}" for name in rest]
    return {**pages, **{title: [module] for title, module in MODULES.items()}}


def stage(folder: Path) -> Path:
    """Put pages and configuration into a folder; the path of the configuration."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    for pattern in COPIED:
        for path in sorted(ROOT.glob(pattern)):
            target = pages / path.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    entries = []
    for title, names in reference().items():
        name = f"reference/{title.lower().replace(' ', '-')}.md"
        text = "\n\n".join([f"# {title}", *(f"::: {name}" for name in names)]) + "\n"
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_text(text, encoding="utf-8")
        entries.append(f"      - {title}: {name}")
    text = (ROOT / "docs" / "mkdocs.yml").read_text(encoding="utf-8")
    text = text.replace("@PYTHON@", (ROOT / "python").as_posix())
    text = text.replace("@EXTENSION@", (ROOT / "docs" / "docstrings.py").as_posix())
    text = text.replace("@REFERENCE@", "\n".join(entries))
    (folder / "mkdocs.yml").write_text(text, encoding="utf-8")
    return folder / "mkdocs.yml"


def main() -> None:
    """Stage and build."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "site"
    config = stage(folder.resolve())
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(config)]
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
