"""Places in the program's code in words."""

from __future__ import annotations

import pytest

from nsysdiag.document.names import call_site_label, host_code_label, whole
from nsysdiag.report import CallSite, CodeFrame, CodeShare


def native(*symbols: str, module: str = "solver") -> list[CodeFrame]:
    return [CodeFrame(symbol=symbol, module=module) for symbol in symbols]


def python(symbol: str, file: str, line: int | None = None) -> CodeFrame:
    return CodeFrame(symbol=symbol, module=file, python=True, line=line)


@pytest.mark.parametrize(
    ("site", "shown"),
    [
        (None, ""),
        (CallSite(frames=[], source="cuda", chains=1, of=1), ""),
        (CallSite(frames=native("pack", "main"), source="cuda", chains=1, of=1), "pack ← main [solver]"),
        (
            CallSite(frames=native("void pack<int>(int*)", "main"), source="sampling", chains=12, of=20),
            "pack ← main [solver], 12 of 20 samples",
        ),
        (
            CallSite(frames=[*native("f", module="libmine.so"), *native("main")], source="osrt", chains=1, of=2),
            "f [libmine.so] ← main [solver], 1 of 2 calls",
        ),
        (CallSite(frames=native(""), source="cuda", chains=1, of=1), "no symbol [solver]"),
        (
            CallSite(frames=native("poll", module="libc.so.6"), source="osrt", chains=1, of=1, own=False),
            "library code: poll [libc.so.6]",
        ),
        (
            CallSite(frames=native("", module="[kernel.kallsyms]"), source="sampling", chains=1, of=1, own=False),
            "library code: no symbol [kernel.kallsyms]",
        ),
        (
            CallSite(frames=native("step"), source="cuda", chains=1, of=1, launch=True),
            "the launch, in step [solver]",
        ),
        (
            CallSite(frames=[python("load", "data.py", 17), python("<module>", "")], source="python", chains=2, of=3),
            "load (data.py:17) ← <module>, 2 of 3 back traces",
        ),
        (
            CallSite(frames=[python("load", "data.py"), *native("main")], source="?", chains=1, of=3),
            "load (data.py) ← main [solver], 1 of 3 call chains",
        ),
    ],
)
def test_call_sites(site: CallSite | None, shown: str) -> None:
    assert call_site_label(site) == shown


@pytest.mark.parametrize(
    ("symbol", "shown"),
    [
        ("run(tile&)::{lambda(int)#1}::operator()(int) const", "run::{lambda#1}::operator"),
        ("solve(int) [clone .isra.0]", "solve"),
        ("const", "const"),
    ],
)
def test_names_without_what_the_compiler_added(symbol: str, shown: str) -> None:
    site = CallSite(frames=native(symbol), source="cuda", chains=1, of=1)
    assert call_site_label(site) == f"{shown} [solver]"


def test_long_and_odd_names_are_cut_and_made_visible() -> None:
    site = CallSite(frames=native("f" * 500 + "\x1b[31m", module="\u202e"), source="cuda", chains=1, of=1)
    shown = call_site_label(site)
    assert shown.isprintable()
    assert len(shown) < 100
    assert call_site_label(site, whole) == "f" * 500 + "\x1b[31m [\u202e]"


def test_host_code() -> None:
    code = [
        CodeShare(symbol="_PyEval_EvalFrameDefault", kind="interpreter", share=0.62),
        CodeShare(symbol="void std::sort<int>(int*)", kind="native library", share=0.2),
    ]
    assert host_code_label(code) == "_PyEval_EvalFrameDefault (interpreter) 62.0%, std::sort (native library) 20.0%"
    assert host_code_label([]) == ""
