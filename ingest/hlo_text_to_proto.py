"""Program that turns HLO text into a serialized HloModuleProto, from standard input to standard output.

It is run in a process of its own by hlo_text, because jaxlib's parser can end the process on damaged text.
"""

from __future__ import annotations

import importlib
import sys

NO_PARSER = 3
REJECTED = 4


def main() -> int:
    """Convert; the exit status is 0, NO_PARSER or REJECTED (with the parser's message on standard error)."""
    # The bindings moved in jaxlib 0.10.
    for name in ("jaxlib._hlo", "jaxlib._jax"):
        try:
            parse = importlib.import_module(name).hlo_module_from_text
        except (ImportError, AttributeError):
            continue
        break
    else:
        return NO_PARSER
    text = sys.stdin.buffer.read().decode(errors="replace")
    try:
        proto = parse(text).as_serialized_hlo_module_proto()
    except (RuntimeError, ValueError) as error:
        sys.stderr.write(str(error))
        return REJECTED
    sys.stdout.buffer.write(proto)
    return 0


if __name__ == "__main__":
    sys.exit(main())
