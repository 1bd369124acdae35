"""The numbered thunks of modules: of small ones by hand, of real ones by the sequences that XLA dumped."""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import pytest

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto
from tracewh.ingest.hlo_thunks import ThunkSequence

from .hlo_oracle import module_of_text, modules_of_hlo_proto
from .hlo_wire import computation, instruction, message, module, packed
from .xspace_files import ARCHIVES, file_id

Row = tuple[str, str, str | None, int]


def thunks(data: bytes) -> list[Any]:
    """The thunks of a serialized module; their numbers count from 1 on."""
    proto = HloModuleProto.FromString(data)
    found = list(ThunkSequence(ModuleGraph(proto), proto))
    assert [thunk.index for thunk in found] == list(range(1, len(found) + 1))
    return found


def rows(data: bytes) -> list[Row]:
    """Kind, instruction, kernel name and node position of each thunk."""
    return [
        (thunk.kind, thunk.instruction.name.decode(), thunk.kernel_name, thunk.node_position)
        for thunk in thunks(data)
    ]


def entry(body: str, computations: str = "", head: str = "HloModule m, is_scheduled=true") -> list[Row]:
    """The thunks of a module whose entry has the parameters x and y and then `body`."""
    return rows(
        module_of_text(f"""{head}
{computations}
ENTRY main {{
  x = f32[8,4]{{1,0}} parameter(0)
  y = f32[8,4]{{1,0}} parameter(1)
{body}
}}
""")
    )


NEGATED = """negated { a = f32[8,4]{1,0} parameter(0)
  ROOT b = f32[8,4]{1,0} negate(a) }
"""


# --- single instructions ------------------------------------------------------------------------------------


def test_names_and_values_are_no_thunks() -> None:
    found = entry("""
  c = f32[] constant(1)
  t = (f32[8,4]{1,0}, f32[8,4]{1,0}) tuple(x, y)
  g = f32[8,4]{1,0} get-tuple-element(t), index=0
  b = f32[32]{0} bitcast(g)
  k = token[] after-all()
  ROOT d = f32[32]{0} add-dependency(b, k)""")
    assert found == []


def test_a_fusion_is_a_kernel_that_is_called_after_it() -> None:
    found = entry(
        "  neg-fusion.12 = f32[8,4]{1,0} fusion(x), kind=kLoop, calls=negated\n"
        "  ROOT last = f32[8,4]{1,0} fusion(neg-fusion.12), kind=kLoop, calls=negated_2",
        NEGATED + NEGATED.replace("negated", "negated_2"),
    )
    assert found == [
        ("kernel", "neg-fusion.12", "neg_fusion_12", 0),
        ("kernel", "last", "last", 1),
    ]


def test_a_fused_sort_names_the_kernel() -> None:
    found = entry(
        "  ROOT fusion.3 = f32[8,4]{1,0} fusion(x), kind=kCustom, calls=sorting",
        """less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = pred[] compare(p, q), direction=LT }
sorting { a = f32[8,4]{1,0} parameter(0)
  ROOT sort.7.1 = f32[8,4]{1,0} sort(a), dimensions={1}, to_apply=less }
""",
    )
    assert found == [("kernel", "fusion.3", "sort_7_1", 0)]


def test_copies() -> None:
    found = entry("""
  copy.4 = f32[8,4]{1,0} copy(x)
  begun = (f32[8,4]{1,0}, f32[8,4]{1,0}, u32[]) copy-start(y)
  done = f32[8,4]{1,0} copy-done(begun)
  ROOT t = (f32[8,4]{1,0}, f32[8,4]{1,0}) tuple(copy.4, done)""")
    assert found == [
        ("copy", "copy.4", None, 0),
        ("copy", "begun", None, 1),
        ("async_done", "done", None, 2),
    ]


@pytest.mark.parametrize(
    ("whole", "part", "bounds", "kind"),
    [
        # Rows of a row-major array lie together; columns do not, unless there is one row.
        ("f32[8,4]{1,0}", "f32[2,4]{1,0}", "[2:4], [0:4]", "copy"),
        ("f32[8,4]{1,0}", "f32[1,3]{1,0}", "[2:3], [1:4]", "copy"),
        ("f32[8,4]{1,0}", "f32[8,2]{1,0}", "[0:8], [0:2]", "kernel"),
        ("f32[8,4]{1,0}", "f32[2,2]{1,0}", "[0:2], [0:2]", "kernel"),
        # Column-major, it is the other way around.
        ("f32[8,4]{0,1}", "f32[8,2]{0,1}", "[0:8], [0:2]", "copy"),
        ("f32[8,4]{0,1}", "f32[2,4]{0,1}", "[2:4], [0:4]", "kernel"),
        ("f32[6]{0}", "f32[2]{0}", "[1:3]", "copy"),
        ("f32[3,8,4]{2,1,0}", "f32[1,2,4]{2,1,0}", "[1:2], [2:4], [0:4]", "copy"),
        ("f32[3,8,4]{2,1,0}", "f32[2,2,4]{2,1,0}", "[1:3], [2:4], [0:4]", "kernel"),
        ("f32[3,8,4]{2,1,0}", "f32[2,8,4]{2,1,0}", "[1:3], [0:8], [0:4]", "copy"),
    ],
)
def test_a_slice_in_one_piece_is_a_copy(whole: str, part: str, bounds: str, kind: str) -> None:
    found = rows(
        module_of_text(f"""HloModule m, is_scheduled=true
cut {{ a = {whole} parameter(0)
  ROOT b = {part} slice(a), slice={{{bounds}}} }}
ENTRY main {{ x = {whole} parameter(0)
  ROOT cut.1 = {part} fusion(x), kind=kLoop, calls=cut }}
""")
    )
    assert found == [(kind, "cut.1", "cut_1" if kind == "kernel" else None, 0)]


def test_a_slice_that_is_computed_with_is_a_kernel() -> None:
    found = entry(
        "  ROOT cut.1 = f32[2,4]{1,0} fusion(x), kind=kLoop, calls=cut",
        """cut { a = f32[8,4]{1,0} parameter(0)
  b = f32[2,4]{1,0} slice(a), slice={[2:4], [0:4]}
  ROOT c = f32[2,4]{1,0} negate(b) }
""",
    )
    assert found == [("kernel", "cut.1", "cut_1", 0)]


def test_library_calls_and_what_is_left_over() -> None:
    found = entry("""
  gemm.1 = f32[8,8]{1,0} custom-call(x, y), custom_call_target="__cublas$lt$matmul"
  part.2 = u32[] partition-id()
  ROOT t = (f32[8,8]{1,0}, u32[]) tuple(gemm.1, part.2)""")
    assert found == [("library", "gemm.1", None, 0), ("other", "part.2", "part_2", 1)]


@pytest.mark.parametrize(
    ("target", "configuration", "kernel"),
    [
        (
            "__gpu$xla.gpu.triton",
            b'{grid_x = 8 : i32, ir = "ML\\EF", name = "kern", num_warps = 4 : i32}',
            "kern",
        ),
        ("__gpu$xla.gpu.triton", b'{name = "two_kernels"}', "two_kernels"),
        ("__gpu$TopK", b"{is_stable = true}", "topk"),
        ("__gpu$xla.gpu.triton", b"{}", None),
        ("cusolver_potrf_ffi", b'{name = "kern"}', None),
    ],
)
def test_custom_calls_that_are_kernels(target: str, configuration: bytes, kernel: str | None) -> None:
    call = instruction(1, "custom-call", (28, target), (43, configuration))
    found = rows(module(computation(5, call), entry=5) + scheduled({5: (1,)}))
    assert found == [("library" if kernel is None else "kernel", "custom-call.1", kernel, 0)]


# --- other streams ------------------------------------------------------------------------------------------

SLICED = """sliced { a = f32[8,4]{1,0} parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT b = f32[1,4]{1,0} dynamic-slice(a, i, zero), dynamic_slice_sizes={1,4} }
"""
SLICING = (
    SLICED
    + """beside { p = f32[8,4]{1,0} parameter(0)
  q = s32[] parameter(1)
  ROOT slice.5 = f32[1,4]{1,0} fusion(p, q), kind=kLoop, calls=sliced }
"""
)


def test_a_dynamic_slice_on_another_stream_is_a_copy_inside_of_a_graph() -> None:
    """The copy has the first number. Starting and awaiting has numbers, but no node."""
    found = entry(
        """
  n = s32[] constant(3)
  start.1 = ((f32[8,4]{1,0}, s32[]), f32[1,4]{1,0}, u32[]) async-start(x, n), calls=beside
  fusion.2 = f32[8,4]{1,0} fusion(y), kind=kLoop, calls=negated
  done.3 = f32[1,4]{1,0} async-done(start.1)
  fusion.4 = f32[8,4]{1,0} fusion(fusion.2), kind=kLoop, calls=negated_2
  ROOT t = (f32[8,4]{1,0}, f32[1,4]{1,0}) tuple(fusion.4, done.3)""",
        SLICING + NEGATED + NEGATED.replace("negated", "negated_2"),
    )
    assert found == [
        ("async_start", "start.1", None, 0),
        ("nested_copy", "slice.5", None, 0),
        ("dynamic_slice", "slice.5", None, 0),
        ("kernel", "fusion.2", "fusion_2", 1),
        ("async_done", "done.3", None, 2),
        ("kernel", "fusion.4", "fusion_4", 2),
    ]


def test_on_the_stream_of_the_program_a_dynamic_slice_is_a_kernel() -> None:
    found = entry(
        "  n = s32[] constant(3)\n  ROOT slice.5 = f32[1,4]{1,0} fusion(x, n), kind=kLoop, calls=sliced",
        SLICED,
    )
    assert found == [("kernel", "slice.5", "slice_5", 0)]


def test_a_dynamic_slice_that_computes_is_a_kernel_on_any_stream() -> None:
    found = entry(
        """
  n = s32[] constant(3)
  start.1 = ((f32[8,4]{1,0}, s32[]), f32[1,4]{1,0}, u32[]) async-start(x, n), calls=beside
  ROOT done.3 = f32[1,4]{1,0} async-done(start.1)""",
        SLICING.replace("ROOT b =", "b =").replace("{1,4} }", "{1,4}\n  ROOT c = f32[1,4]{1,0} negate(b) }"),
    )
    assert [row[:3] for row in found] == [
        ("async_start", "start.1", None),
        ("kernel", "slice.5", "slice_5"),
        ("async_done", "done.3", None),
    ]


def test_thunks_on_other_streams_belong_to_the_computation_that_starts_them() -> None:
    data = module_of_text(f"""HloModule m, is_scheduled=true
{SLICING}
ENTRY main {{ x = f32[8,4]{{1,0}} parameter(0)
  n = s32[] constant(3)
  start.1 = ((f32[8,4]{{1,0}}, s32[]), f32[1,4]{{1,0}}, u32[]) async-start(x, n), calls=beside
  ROOT done.3 = f32[1,4]{{1,0}} async-done(start.1) }}
""")
    owner = HloModuleProto.FromString(data).entry_computation_id
    assert {thunk.computation_id for thunk in thunks(data)} == {owner}


ADDED = """added { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT r = f32[] add(p, q) }
"""


def test_collectives() -> None:
    """Alone, split into start and done by their own opcodes, and in an async wrapper."""
    found = entry(
        """
  sum.1 = f32[8,4]{1,0} all-reduce(x), replica_groups={}, to_apply=added
  begun.2 = f32[8,4]{1,0} all-reduce-start(y), replica_groups={}, to_apply=added
  fusion.3 = f32[8,4]{1,0} fusion(sum.1), kind=kLoop, calls=negated
  ended.4 = f32[8,4]{1,0} all-reduce-done(begun.2)
  start.5 = ((f32[8,4]{1,0}), f32[8,4]{1,0}, u32[]) async-start(fusion.3), calls=wrapped
  done.6 = f32[8,4]{1,0} async-done(start.5)
  ROOT t = (f32[8,4]{1,0}, f32[8,4]{1,0}) tuple(ended.4, done.6)""",
        ADDED
        + NEGATED
        + """wrapped { a = f32[8,4]{1,0} parameter(0)
  ROOT inner.7 = f32[8,4]{1,0} all-reduce(a), replica_groups={}, to_apply=added }
""",
    )
    assert found == [
        ("collective", "sum.1", None, 0),
        ("async_start", "begun.2", None, 1),
        ("collective", "begun.2", None, 1),
        ("kernel", "fusion.3", "fusion_3", 2),
        ("async_done", "ended.4", None, 3),
        ("async_start", "start.5", None, 3),
        ("collective", "inner.7", None, 3),
        ("async_done", "done.6", None, 4),
    ]


def test_a_fusion_around_a_collective_is_one() -> None:
    found = entry(
        "  ROOT fusion.1 = f32[8,4]{1,0} fusion(x), kind=kCustom, calls=wrapped",
        ADDED
        + """wrapped { a = f32[8,4]{1,0} parameter(0)
  ROOT inner = f32[8,4]{1,0} all-reduce(a), replica_groups={}, to_apply=added }
""",
    )
    assert found == [("collective", "fusion.1", None, 0)]


# --- other computations -------------------------------------------------------------------------------------

LOOP = """body { s = (s32[], f32[8,4]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[8,4]{1,0} get-tuple-element(s), index=1
  copy.8 = f32[8,4]{1,0} copy(v)
  turn.9 = f32[8,4]{1,0} fusion(copy.8), kind=kLoop, calls=negated
  ROOT r = (s32[], f32[8,4]{1,0}) tuple(i, turn.9) }
condition { s = (s32[], f32[8,4]{1,0}) parameter(0)
  j = s32[] get-tuple-element(s), index=0
  ROOT test.7 = pred[] fusion(j), kind=kLoop, calls=tested }
"""
TESTED = """tested { a = s32[] parameter(0)
  ten = s32[] constant(10)
  ROOT b = pred[] compare(a, ten), direction=LT }
"""


def test_a_loop_comes_before_its_condition_and_that_before_the_body() -> None:
    """Each computation counts the nodes of a graph of its own."""
    found = entry(
        """
  first.1 = f32[8,4]{1,0} fusion(x), kind=kLoop, calls=negated_2
  n = s32[] constant(0)
  state = (s32[], f32[8,4]{1,0}) tuple(n, first.1)
  loop.2 = (s32[], f32[8,4]{1,0}) while(state), condition=condition, body=body
  out = f32[8,4]{1,0} get-tuple-element(loop.2), index=1
  ROOT last.3 = f32[8,4]{1,0} fusion(out), kind=kLoop, calls=negated_3""",
        NEGATED
        + NEGATED.replace("negated", "negated_2")
        + NEGATED.replace("negated", "negated_3")
        + TESTED
        + LOOP,
    )
    assert found == [
        ("kernel", "first.1", "first_1", 0),
        ("loop", "loop.2", None, 1),
        ("kernel", "test.7", "test_7", 0),
        ("copy", "copy.8", None, 0),
        ("kernel", "turn.9", "turn_9", 1),
        ("kernel", "last.3", "last_3", 2),
    ]


def test_a_conditional_comes_behind_its_branches() -> None:
    found = entry(
        """
  n = s32[] parameter(2)
  first.1 = f32[8,4]{1,0} copy(x)
  choice.2 = f32[8,4]{1,0} conditional(n, x, y), branch_computations={left, right}
  ROOT last.3 = f32[8,4]{1,0} copy(choice.2)""",
        NEGATED
        + """left { a = f32[8,4]{1,0} parameter(0)
  ROOT copy.8 = f32[8,4]{1,0} copy(a) }
right { a = f32[8,4]{1,0} parameter(0)
  ROOT fusion.9 = f32[8,4]{1,0} fusion(a), kind=kLoop, calls=negated }
""",
    )
    assert found == [
        ("copy", "first.1", None, 0),
        ("copy", "copy.8", None, 0),
        ("kernel", "fusion.9", "fusion_9", 0),
        ("branch", "choice.2", None, 1),
        ("copy", "last.3", None, 2),
    ]


def test_a_call_is_its_thunks() -> None:
    found = entry(
        "  copy.1 = f32[8,4]{1,0} copy(x)\n  ROOT call.2 = f32[8,4]{1,0} call(copy.1), to_apply=outlined",
        NEGATED
        + """outlined { a = f32[8,4]{1,0} parameter(0)
  ROOT fusion.3 = f32[8,4]{1,0} fusion(a), kind=kLoop, calls=negated }
""",
    )
    assert found == [("copy", "copy.1", None, 0), ("kernel", "fusion.3", "fusion_3", 0)]


def test_the_order_is_that_of_the_schedule() -> None:
    copies = [instruction(number, "copy") for number in (1, 2, 3)]
    data = module(computation(5, *copies), entry=5)
    assert [row[1] for row in rows(data + scheduled({5: (3, 1, 2)}))] == ["copy.3", "copy.1", "copy.2"]


def test_without_a_schedule_there_is_no_order() -> None:
    text = "  ROOT copy.1 = f32[8,4]{1,0} copy(x)"
    assert len(entry(text)) == 1
    assert entry(text, head="HloModule m") == []


# --- damage -------------------------------------------------------------------------------------------------


def scheduled(sequences: dict[int, tuple[int, ...]]) -> bytes:
    """The schedule of a module, to be written behind it: instructions by computation."""
    entries = [
        (1, message((1, number), (2, message((1, packed(*order)))))) for number, order in sequences.items()
    ]
    return message((7, message(*entries)))


def test_what_refers_to_nothing_runs_nothing() -> None:
    data = module(
        computation(
            5,
            instruction(1, "copy"),
            instruction(2, "while", called=(77, 78)),
            instruction(3, "call", called=(77,)),
            instruction(4, "fusion", called=(77,)),
            instruction(6, "async-start", called=(77,)),
            instruction(7, "fusion"),
            instruction(8, "while"),
        ),
        entry=5,
    )
    order = (99, 1, 2, 3, 4, 6, 7, 8, -1)
    assert rows(data + scheduled({5: order, 66: (1, 2)})) == [
        ("copy", "copy.1", None, 0),
        ("loop", "while.2", None, 1),
        ("kernel", "fusion.4", "fusion_4", 2),
        ("async_start", "async-start.6", None, 3),
        ("kernel", "fusion.7", "fusion_7", 3),
        ("loop", "while.8", None, 4),
    ]


def test_a_schedule_without_the_computation_or_an_entry_that_is_not_there() -> None:
    data = module(computation(5, instruction(1, "copy"), instruction(2, "negate")), entry=5)
    assert [row[:2] for row in rows(data + scheduled({6: (1,)}))] == [
        ("copy", "copy.1"),
        ("other", "negate.2"),
    ]
    assert rows(module(computation(5, instruction(1, "copy")), entry=6) + scheduled({5: (1,)})) == []


def test_of_several_instructions_with_one_id_the_first_counts() -> None:
    data = module(computation(5, instruction(1, "copy"), instruction(1, "negate")), entry=5)
    assert [row[:2] for row in rows(data + scheduled({5: (1,)}))] == [("copy", "copy.1")]


@pytest.mark.parametrize("opcode", ["call", "while", "conditional", "async-start"])
def test_a_computation_that_calls_itself_comes_to_an_end(opcode: str) -> None:
    data = module(
        computation(5, instruction(1, "copy"), instruction(2, opcode, called=(5, 5)), instruction(3, "copy")),
        entry=5,
    )
    found = rows(data + scheduled({5: (1, 2, 3)}))
    assert found[0] == ("copy", "copy.1", None, 0)
    assert 2 <= len(found) <= 4 * 3 + 4


def test_calls_that_double_at_each_level_come_to_an_end() -> None:
    levels = [
        computation(
            number, *(instruction(10 * number + turn, "call", called=(number + 1,)) for turn in range(2))
        )
        for number in range(1, 40)
    ]
    last = computation(40, instruction(400, "copy"))
    data = module(*levels, last, entry=1) + scheduled({40: (400,)})
    assert 1 <= len(thunks(data)) <= 4 * (2 * 39 + 1) + 4


def test_calls_that_double_and_run_nothing_come_to_an_end() -> None:
    levels = [
        computation(
            number, *(instruction(10 * number + turn, "call", called=(number + 1,)) for turn in range(2))
        )
        for number in range(1, 60)
    ]
    data = module(*levels, computation(60, instruction(600, "parameter")), entry=1)
    assert thunks(data + scheduled({60: (600,)})) == []


def test_deep_nesting_comes_to_an_end() -> None:
    levels = [
        computation(
            number,
            instruction(2 * number, "copy"),
            instruction(2 * number + 1, "call", called=(number + 1,)),
        )
        for number in range(1, 5000)
    ]
    found = thunks(module(*levels, entry=1) + scheduled({1: (2, 3)}))
    assert 60 <= len(found) <= 70


def test_bytes_that_are_no_text_and_a_shape_that_is_none() -> None:
    broken = message((1, b"\xff.1"), (2, "fusion"), (3, b"\xff\xff"), (35, 1), (38, packed(6)))
    inner = computation(
        6, instruction(2, "parameter", shape=b"\xff"), instruction(3, "negate", shape=b"\xff")
    )
    (found,) = thunks(module(computation(5, broken), inner, entry=5) + scheduled({5: (1,)}))
    assert (found.kind, found.kernel_name) == ("kernel", "\ufffd_1")


# --- what XLA dumps -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DumpedThunk:
    """A line of a dumped thunk sequence; `kernel` is None for what is no kernel."""

    kind: str
    kernel: str | None


_DUMPED_KINDS = {
    "kCustomKernel": {"kernel"},
    "kCopy": {"copy", "nested_copy"},
    "kDynamicSliceFusion": {"dynamic_slice"},
    "kCublasLtMatmul": {"library"},
    "kCuDnn": {"library"},
    "kCustomCall": {"library"},
    "kWhile": {"loop"},
    "kAsyncStart": {"async_start"},
    "kAsyncDone": {"async_done"},
    "kAllGather": {"collective"},
    "kAllReduce": {"collective"},
    "kReduceScatter": {"collective"},
    "kAllToAll": {"collective"},
    "kCollectivePermute": {"collective"},
    "kCollectiveKernel": {"collective"},
}
# `017: kCustomKernel [prev=016 (1) | sink ] wrapped_iota grid: ...`, indented by depth
_DUMPED = re.compile(r" *(\d+): (k\w+) +\[[^\]]*\] *(\S*)")


def dumped_sequences(archive: Path) -> dict[str, tuple[dict[int, DumpedThunk], bytes]]:
    """The thunk sequences dumped in an archive, each with the module, by their paths."""
    texts: dict[PurePath, str] = {}
    modules: dict[PurePath, bytes] = {}
    with tarfile.open(archive) as packed_files:
        for member in packed_files:
            path = PurePath(member.name)
            stem = path.parent / path.name.split(".")[0]
            if path.name.endswith((".thunk_sequence.txt", "after_optimizations.hlo.pb")):
                file = packed_files.extractfile(member)
                assert file is not None
                if path.suffix == ".pb":
                    (modules[stem],) = modules_of_hlo_proto(file.read())
                else:
                    texts[stem] = file.read().decode()
    assert texts.keys() == modules.keys()
    found = {}
    for stem, text in texts.items():
        lines = [match for match in map(_DUMPED.match, text.splitlines()) if match]
        sequence = {
            int(line[1]): DumpedThunk(line[2], line[3] if line[2] == "kCustomKernel" else None)
            for line in lines
        }
        assert len(sequence) == len(lines) > 0
        found[str(stem)] = sequence, modules[stem]
    return found


@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_thunks_that_xla_dumped(archive: Path) -> None:
    """Numbers and kinds are equal, and so are names, but for fusions of equal code.

    Those run the kernel of the first of them, and no kernel has their own name.
    """
    if not archive.exists():
        pytest.skip(f"{archive.name} is not at hand: shared/captures lies outside the repository")
    sequences = dumped_sequences(archive)
    assert sequences
    for path, (dumped, data) in sequences.items():
        found = {thunk.index: thunk for thunk in thunks(data)}
        assert found.keys() == dumped.keys(), path
        kernels = {thunk.kernel for thunk in dumped.values()} - {None}
        first_of = {found[index].kernel_name: index for index in sorted(found, reverse=True)}
        own = 0
        for index, expected in dumped.items():
            assert found[index].kind in _DUMPED_KINDS[expected.kind], (path, index, expected)
            if expected.kernel is None:
                assert found[index].kernel_name is None, (path, index)
            elif found[index].kernel_name == expected.kernel:
                own += 1
            else:
                assert found[index].kernel_name not in kernels, (path, index, expected)
                assert first_of[expected.kernel] < index, (path, index, expected)
        assert own == len(kernels) > 0
