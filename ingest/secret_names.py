"""Which values of a configuration are secrets, which are neither recorded nor stored: their names say so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

# A segment of a parameter's path that says that what lies below is a secret.
_SECRET_NAME = (
    r"\w*(?:password|passwd|secret|api_?key|access_?key|credential|private_?key)\w*"
    r"|(?!(?:bos|cls|eos|image|mask|pad|sep|unk)_)(?:\w*_)?token|(?:access|auth|api|bearer|github|hf|wandb)_?tokens?"
)
_SECRET = re.compile(rf"(?:^|[.\]])(?:{_SECRET_NAME})(?=$|[.\[])", re.IGNORECASE)
# The same in a command line: --hf_token=..., or --hf_token and the next argument.
_SECRET_OPTION = re.compile(
    rf"^--?(?:{_SECRET_NAME})(=.*)?$".replace("_?", "[-_]?"), re.IGNORECASE | re.DOTALL
)
# And in the text of an object: Settings(api_key='...'), {'token': '...'}.
_SECRET_FIELD = re.compile(rf"\b(?:{_SECRET_NAME})['\"]?\s*[=:]", re.IGNORECASE)


def secret_params(params: Iterable[tuple[str, str | None]]) -> Iterator[bool]:
    """Whether each of the parameters, in the order of their file, is a secret.

    A parameter is the path and the text of a value, `mesh.fsdp`, `argv[0]`. It is one by its name, or by the
    option that it is or that stands before it in a list.
    """
    follows_option = False
    for param, value in params:
        option = _SECRET_OPTION.match(value) if value is not None and param.endswith("]") else None
        yield bool(_SECRET.search(param)) or follows_option or (option is not None and bool(option[1]))
        follows_option = option is not None and not option[1]


def names_a_secret(text: str) -> bool:
    """Whether the text of an object, as `repr` writes it, has a field whose name says that it is secret."""
    return _SECRET_FIELD.search(text) is not None
