"""A short run of the fuzzer of the XSpace decoders; `python tests/fuzz_xspace.py` runs for long."""

from .fuzz_xspace import check, examples, valid_space


def test_the_space_that_is_bent_is_read() -> None:
    check(valid_space(), (16_384, 1 << 20, 1))


def test_decoders_agree_with_protobuf() -> None:
    # The same examples each time: a new fault is not to be met by chance.
    examples(200, derandomize=True)
