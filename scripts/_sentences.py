"""Plug-in of mypy: refuses what forgets which words of a `Phrase` are names.

With NSYSDIAG_PHRASES=apart a `Phrase` is no text for mypy: so every function says by its types where names are.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mypy.nodes import ConditionalExpr, Expression, OpExpr
from mypy.plugin import ClassDefContext, FunctionContext, MethodContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

PHRASE = "nsysdiag.typed.Phrase"
FINISHED = "formats document show cli ci batch share show.py entries.py words.py"
"""What reads finished reports only, whose sentences are plain texts: folders and files."""
LOST = "the names in this sentence are forgotten: use say, joined, cut or plain of nsysdiag.typed"
Context = FunctionContext | MethodContext


class Sentences(Plugin):
    """Looks at `str()` and at the methods of texts, f-strings among them."""

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        """For the methods that make texts."""
        holder, _, method = fullname.rpartition(".")
        return _check if holder in ("builtins.str", PHRASE) and not method.startswith("__") else None

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """For `str()`."""
        return _check if fullname == "builtins.str" else None

    def get_customize_class_mro_hook(self, fullname: str) -> Callable[[ClassDefContext], None] | None:
        """For the class of phrases."""
        return _set_apart if fullname == PHRASE and os.environ.get("NSYSDIAG_PHRASES") == "apart" else None


def finished(path: str) -> bool:
    """Whether a file reads finished reports only."""
    return not set(path.replace("\\", "/").split("/")).isdisjoint(FINISHED.split())


def _set_apart(context: ClassDefContext) -> None:
    made = context.cls.info
    made.bases = [context.api.named_type("builtins.object")]
    made.mro = [each for each in made.mro if each is made or each.fullname == "builtins.object"]


def _check(context: Context) -> Type:
    given = zip(context.args, context.arg_types, strict=True)
    holder = [context.type] if isinstance(context, MethodContext) else []
    lost = any(map(_holds, holder)) or any(_any_holds(context, *each) for each in given)
    if lost and not finished(context.api.path):
        context.api.fail(LOST, context.context)
    return context.default_return_type


def _any_holds(context: Context, values: list[Expression], kinds: list[Type]) -> bool:
    return any(map(_holds, kinds)) or any(_chosen(context, value) for value in values)


def _holds(kind: Type) -> bool:
    kind = get_proper_type(kind)
    parts = kind.items if isinstance(kind, UnionType) else kind.args if isinstance(kind, Instance) else ()
    return (isinstance(kind, Instance) and kind.type.fullname == PHRASE) or any(map(_holds, parts))


def _chosen(context: Context, value: Expression) -> bool:
    """Whether one side of a choice is a phrase: mypy takes the choice for a str."""
    if isinstance(value, ConditionalExpr):
        sides = (value.if_expr, value.else_expr)
    elif isinstance(value, OpExpr) and value.op in ("or", "and"):
        sides = (value.left, value.right)
    else:
        return False
    with context.api.msg.filter_errors():
        return any(_holds(context.api.get_expression_type(each)) or _chosen(context, each) for each in sides)


def plugin(_version: str) -> type[Plugin]:
    """The entry point for mypy."""
    return Sentences
