"""The HLO reader, against jaxlib's own text of the same modules and against hand-encoded messages."""

from __future__ import annotations

import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tracewh.ingest import hlo_tables
from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.hlo import read_program
from tracewh.ingest.hlo_files import is_optimized_dump, program_id_from_name
from tracewh.ingest.hlo_tables import module_tables
from tracewh.ingest.hlo_text import read_text_program
from tracewh.ingest.op_names import split_op_name

os.environ["JAX_PLATFORMS"] = "cpu"
SHARED = Path(__file__).parents[1].parent / "shared"
TRIP_COUNT = 5

# --- wire format, by hand -----------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    value %= 2**64
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, int | bytes | str]) -> bytes:
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    position = 0

    def take_varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < len(data):
        tag = take_varint()
        if tag & 7 == 0:
            yield tag >> 3, take_varint()
            continue
        length = {1: 8, 5: 4}.get(tag & 7) or take_varint()
        yield tag >> 3, data[position : position + length]
        position += length


def members(data: bytes, number: int) -> list[Any]:
    return [value for found, value in fields(data) if found == number]


# --- reading ------------------------------------------------------------------------------------------------


BUFFER_TABLES = ("hlo_buffers", "hlo_logical_buffers", "hlo_heap_events")


class Read:
    """A module that was read, with its rows as dictionaries and its names as text."""

    def __init__(self, data: bytes | str, program_id: int | None = None) -> None:
        self.names, self.problem_counter = Interner(), ProblemCounter()
        if isinstance(data, str):
            self.program = read_text_program(data, program_id, "test.pb")
        else:
            self.program = read_program(data, program_id, "test.pb")
        tables = module_tables(self.program.module, self.names, self.problem_counter, "test.pb")
        self.tables = {name: table.to_pylist() for name, table in tables.items()}
        (self.module,) = self.tables["hlo_modules"]
        self.instructions = self.tables["hlo_instructions"]
        for row in self.instructions:
            row["name"] = self.names.strings[row["name_id"]]
            row["op_name"] = None if row["op_name_id"] is None else self.names.strings[row["op_name_id"]]
        self.by_name = {row["name"]: row for row in self.instructions}
        self.computation_names = {
            row["computation_id"]: row["computation_name"] for row in self.tables["hlo_computations"]
        }

    @property
    def problems(self) -> dict[str, int]:
        return {problem.problem: problem.occurrences for problem in self.problem_counter.problems()}

    def listing(self) -> dict[str, list[tuple[str, str, str]]]:
        """(name, shape, opcode) of the instructions of each computation, by position."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        for row in sorted(self.instructions, key=lambda row: row["position"]):
            computation = self.computation_names[row["computation_id"]]
            found.setdefault(computation, []).append((row["name"], row["shape"], row["opcode"]))
        return found


def jaxlib_hlo() -> Any:
    try:
        from jaxlib import _hlo as hlo
    except ImportError:
        from jaxlib import _jax as hlo
    return hlo


# --- jaxlib's text as the oracle ----------------------------------------------------------------------------


def balanced_end(text: str) -> int:
    """Position after the parenthesis that closes the first one in `text`."""
    depth = 0
    for position in range(text.index("("), len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position + 1
    raise AssertionError(text)


class TextModule:
    """What HLO text says, found by regular expressions."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[dict[str, Any]]] = {}
        self.entry = ""
        for line in text.splitlines():
            if header := re.match(r"(ENTRY )?%(\S+) \(.*\{$", line):
                computation = self.computations.setdefault(header[2], [])
                self.entry = header[2] if header[1] else self.entry
            elif found := re.match(r"  (ROOT )?%(\S+) = (.*)$", line):
                rest = re.sub(r"/\*index=\d+\*/", "", found[3])
                end = balanced_end(rest) if rest.startswith(("(", "b(")) else rest.index(" ")
                shape, rest = rest[:end], rest[end:].lstrip()
                opcode = rest[: rest.index("(")]
                operands_end = balanced_end(rest)
                op_name = re.search(r'op_name="((?:[^"\\]|\\.)*)"', rest)
                computation.append(
                    {
                        "name": found[2],
                        "is_root": bool(found[1]),
                        "shape": shape,
                        "opcode": opcode,
                        "operands": re.findall(r"%([\w.\-]+)", rest[:operands_end]),
                        "called": set(
                            re.findall(r"(?:calls|to_apply|condition|body)=%([\w.\-]+)", rest[operands_end:])
                        ),
                        "op_name": op_name[1].replace("\\'", "'") if op_name else None,
                        "fusion_kind": (re.search(r"kind=(k\w+)", rest) or ["", None])[1],
                        "custom_call_target": (
                            re.search(r'custom_call_target="([^"]*)"', rest) or ["", None]
                        )[1],
                        "channel_id": int((re.search(r"channel_id=(\d+)", rest) or ["", "0"])[1]) or None,
                    }
                )

    def listing(self) -> dict[str, list[tuple[str, str, str]]]:
        return {
            name: [(row["name"], row["shape"], row["opcode"]) for row in rows]
            for name, rows in self.computations.items()
        }


# --- a program of our own -----------------------------------------------------------------------------------


def program(weights: Any, inputs: Any, small: Any) -> Any:
    import jax
    import jax.numpy as jnp

    def layer(carry: Any, weight: Any) -> Any:
        with jax.named_scope("layer"):
            return jnp.tanh(carry @ weight), carry.sum()  # the dot

    with jax.named_scope("layers"):
        carry, sums = jax.lax.scan(layer, inputs, weights)
    ordered = jax.lax.sort((carry.astype(jnp.float32), jnp.cumsum(carry, axis=0)), num_keys=1)
    return carry, sums, ordered, (small + small).astype(jnp.int4)


@pytest.fixture(scope="module")
def compiled() -> Any:
    import jax
    import jax.numpy as jnp

    weights = jnp.ones((TRIP_COUNT, 16, 16), jnp.bfloat16)
    inputs = jnp.ones((8, 16), jnp.bfloat16)
    small = jnp.ones((3, 5), jnp.int4)

    def loss(weights: Any, inputs: Any, small: Any) -> Any:
        carry, sums, ordered, narrow = program(weights, inputs, small)
        return carry.astype(jnp.float32).sum(), (sums, ordered, narrow)

    return jax.jit(jax.grad(loss, has_aux=True)).lower(weights, inputs, small).compile()


@pytest.fixture(scope="module")
def module_proto(compiled: Any) -> bytes:
    data: bytes = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    return data


@pytest.fixture(scope="module")
def buffer_proto(compiled: Any) -> bytes:
    data = getattr(compiled.memory_analysis(), "serialized_buffer_assignment_proto", None)
    if not data:
        pytest.skip("this jaxlib does not give the buffer assignment")
    return bytes(data)


@pytest.fixture(scope="module")
def text_module(module_proto: bytes) -> TextModule:
    return TextModule(jaxlib_hlo().HloModule.from_serialized_hlo_module_proto(module_proto).to_string())


@pytest.fixture(scope="module")
def read(module_proto: bytes) -> Read:
    return Read(module_proto)


def test_instructions_are_those_of_the_text(read: Read, text_module: TextModule) -> None:
    assert read.module["has_schedule"]
    assert read.listing() == text_module.listing()
    assert {"while", "dot", "sort", "fusion", "tuple"} <= {row["opcode"] for row in read.instructions}
    assert read.problems == {}


def test_columns_of_instructions(read: Read, text_module: TextModule) -> None:
    compared = ("is_root", "op_name", "fusion_kind", "custom_call_target", "channel_id")
    for rows in text_module.computations.values():
        for expected in rows:
            row = read.by_name[expected["name"]]
            assert {column: row[column] for column in compared} == {c: expected[c] for c in compared}
            assert row["operand_count"] == len(expected["operands"])


def test_operands_and_calls(read: Read, text_module: TextModule) -> None:
    names = {row["instruction_id"]: row["name"] for row in read.instructions}
    operands: dict[str, list[str]] = {name: [] for name in read.by_name}
    for row in sorted(read.tables["hlo_operands"], key=lambda row: row["operand_index"]):
        operands[names[row["instruction_id"]]].append(names[row["operand_instruction_id"]])
    called: dict[str, set[str]] = {name: set() for name in read.by_name}
    for row in read.tables["hlo_calls"]:
        called[names[row["instruction_id"]]].add(read.computation_names[row["computation_id"]])
    for rows in text_module.computations.values():
        for expected in rows:
            assert operands[expected["name"]] == expected["operands"]
            assert called[expected["name"]] == expected["called"]


def test_computations(read: Read, text_module: TextModule) -> None:
    rows = {row["computation_name"]: row for row in read.tables["hlo_computations"]}
    assert rows.keys() == text_module.computations.keys()
    assert [name for name, row in rows.items() if row["computation_role"] == "entry"] == [text_module.entry]
    assert rows[text_module.entry]["computation_id"] == read.module["entry_computation_id"]
    bodies = {
        called
        for instructions in text_module.computations.values()
        for instruction in instructions
        if instruction["opcode"] == "fusion"
        for called in instruction["called"]
    }
    assert {name for name, row in rows.items() if row["computation_role"] == "fusion"} == bodies != set()
    names = {row["instruction_id"]: row["name"] for row in read.instructions}
    for name, row in rows.items():
        (root,) = (i["name"] for i in text_module.computations[name] if i["is_root"])
        assert names[row["root_instruction_id"]] == root


def test_source_line_and_trip_count(read: Read) -> None:
    lines = Path(__file__).read_text().splitlines()
    (line,) = (number for number, text in enumerate(lines, 1) if text.endswith("# the dot"))
    dots = [row for row in read.instructions if row["opcode"] == "dot"]
    assert {(row["source_file"], row["source_line"]) for row in dots} == {(__file__, line)}
    loops = [row for row in read.instructions if row["opcode"] == "while"]
    assert len(loops) == 2
    for loop in loops:
        assert re.search(r'"known_trip_count":\{"n":"5"', loop["backend_config"])


def test_op_names_of_a_gradient(read: Read) -> None:
    found = {
        (segment.scope, segment.transforms)
        for row in read.instructions
        for segment in split_op_name(row["op_name"] or "")
    }
    assert {("layers", "jvp"), ("layers", "transpose(jvp"), ("layer", ""), ("loss", "jit")} <= found


def test_hlo_proto_and_module_proto_give_the_same_rows(module_proto: bytes, buffer_proto: bytes) -> None:
    bare = Read(module_proto)
    whole = Read(message((1, module_proto), (3, buffer_proto)))
    assert not bare.module["has_buffer_assignment"]
    assert whole.module["has_buffer_assignment"]
    assert whole.module["proto_bytes"] > bare.module["proto_bytes"] == len(module_proto)
    for table in whole.tables.keys() - {"hlo_modules", *BUFFER_TABLES}:
        assert whole.tables[table] == bare.tables[table]
    assert all(bare.tables[table] == [] for table in BUFFER_TABLES)
    # JAX hands the assignment over without its heap traces.
    assert [table for table in BUFFER_TABLES if whole.tables[table]] == ["hlo_buffers", "hlo_logical_buffers"]


def test_buffers_add_up_to_the_memory_analysis(
    compiled: Any, module_proto: bytes, buffer_proto: bytes
) -> None:
    totals: Counter[str] = Counter()
    for row in Read(message((1, module_proto), (3, buffer_proto))).tables["hlo_buffers"]:
        totals[row["allocation_kind"]] += row["bytes"]
        assert (row["parameter_number"] is not None) == (row["allocation_kind"] == "parameter")
    analysis = compiled.memory_analysis()
    assert totals["parameter"] == analysis.argument_size_in_bytes
    assert totals["temporary"] == analysis.temp_size_in_bytes
    assert totals["output"] == analysis.output_size_in_bytes - analysis.alias_size_in_bytes


def test_shape_bytes_are_the_compilers(module_proto: bytes, buffer_proto: bytes) -> None:
    rows = {row["instruction_id"]: row for row in Read(module_proto).instructions}
    compared = 0
    for buffer in members(buffer_proto, 1):
        location = dict(fields(dict(fields(buffer))[3]))
        row = rows[location.get(4, 0)]
        if 3 not in location and row["element_type"] is not None:
            assert row["shape_bytes"] == dict(fields(buffer)).get(2, 0)
            compared += 1
    assert compared > 10
    narrow = {row["shape_bytes"] for row in rows.values() if row["shape"].startswith("s4[3,5]")}
    assert narrow == {8}


# --- shapes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "element_type", "element_count", "shape_bytes"),
    [
        ("f32[]", "f32", 1, 4),
        ("pred[3,5]{1,0}", "pred", 15, 15),
        ("bf16[2,128]{0,1}", "bf16", 256, 512),
        ("c128[3]{0}", "c128", 3, 48),
        ("f8e4m3fn[4,4]{1,0}", "f8e4m3fn", 16, 16),
        ("f32[0,4]{1,0}", "f32", 0, 0),
        ("s4[3,5]{1,0:E(4)}", "s4", 15, 8),
        ("u4[4]{0:E(4)}", "u4", 4, 2),
        ("s4[3,5]{1,0}", "s4", 15, 15),
        ("u2[5]{0:E(2)}", "u2", 5, 2),
        ("f4e2m1fn[3]{0:E(4)}", "f4e2m1fn", 3, 2),
        ("f32[<=6,3]{1,0}", "f32", 18, 72),
        ("f32[?,3]{1,0}", "f32", None, None),
        ("f32[8,128]{1,0:T(8,128)}", "f32", 1024, 4096),
        ("bf16[5,3]{1,0:T(8,128)(2,1)S(5)}", "bf16", 15, 30),
        ("s32[4]{0:T(*)}", "s32", 4, 16),
        ("f32[]{:S(2)}", "f32", 1, 4),
        ("token[]", None, 0, 0),
        ("opaque[]", None, 0, None),
        ("()", None, 0, 0),
        ("(f32[], s32[4]{0})", None, 5, 20),
        ("(s4[3]{0:E(4)}, (s4[3]{0:E(4)}, token[]), f32[2]{0})", None, 8, 12),
        ("(f32[], f32[], f32[], f32[], f32[], f32[])", None, 6, 24),
        ("(f32[], opaque[])", None, 1, None),
        ("b(f32[4]{0})", None, 4, 16),
    ],
)
def test_shape(
    shape: str, element_type: str | None, element_count: int | None, shape_bytes: int | None
) -> None:
    hlo = jaxlib_hlo()
    text = f"HloModule shapes\n\nENTRY entry {{\n  ROOT only = {shape} parameter(0)\n}}\n"
    try:
        module = hlo.hlo_module_from_text(text)
    except RuntimeError:
        pytest.skip("this jaxlib does not know the shape")
    assert TextModule(module.to_string()).listing()["entry"][0][1] == shape
    read = Read(module.as_serialized_hlo_module_proto())
    (row,) = read.instructions
    assert row["shape"] == shape
    assert (row["element_type"], row["element_count"]) == (element_type, element_count)
    assert row["shape_bytes"] == shape_bytes
    assert read.problems == ({"unknown_shape_size": 1} if shape_bytes is None else {})


@pytest.mark.parametrize(
    ("element_bytes", "names"),
    [
        (1, "pred s8 u8 s4 u4 s2 u2 s1 u1"),
        (1, "f8e5m2 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e4m3 f8e3m4 f8e8m0fnu"),
        (1, "f4e2m1fn f6e3m2fn f6e2m3fn"),
        (2, "s16 u16 f16 bf16"),
        (4, "s32 u32 f32"),
        (8, "s64 u64 f64 c64"),
        (16, "c128"),
    ],
)
def test_element_types(element_bytes: int, names: str) -> None:
    hlo = jaxlib_hlo()
    for name in names.split():
        text = f"HloModule types\n\nENTRY entry {{\n  ROOT only = {name}[3]{{0}} parameter(0)\n}}\n"
        try:
            module = hlo.hlo_module_from_text(text)
        except RuntimeError:
            assert name.startswith("f6")  # older jaxlib does not know these
            continue
        (row,) = Read(module.as_serialized_hlo_module_proto()).instructions
        assert (row["element_type"], row["shape_bytes"]) == (name, 3 * element_bytes)


def one_instruction(*extra: tuple[int, int | bytes | str]) -> bytes:
    return message((1, "only"), (2, "add"), (35, 1), *extra)


def one_module(instruction: bytes, *extra: tuple[int, int | bytes | str]) -> bytes:
    computation = message((1, "entry"), (2, instruction), (5, 3), (6, 1))
    return message((1, "m"), (2, "entry"), (3, computation), (6, 3), *extra)


def test_shapes_that_no_compiler_writes() -> None:
    unknown = Read(one_module(one_instruction((3, message((2, 99), (3, 4))))))
    assert unknown.instructions[0]["shape"] == "type99[4]"
    assert unknown.instructions[0]["element_count"] == 4
    assert unknown.instructions[0]["shape_bytes"] is None
    huge = Read(one_module(one_instruction((3, message((2, 11), (3, 2**62), (3, 2**62))))))
    assert huge.instructions[0]["element_count"] is None
    assert huge.problems == {"unknown_shape_size": 1}
    assert Read(one_module(one_instruction())).instructions[0]["shape_bytes"] is None


# --- messages encoded by hand -------------------------------------------------------------------------------

F32 = message((2, 11))


def hand_written_module() -> bytes:
    """Two computations, a schedule that reverses the entry, frames, buffers, 2 replicas x 4 partitions."""
    body = message(
        (1, "body"),
        (2, message((1, "p"), (2, "parameter"), (3, F32), (35, 10))),
        (5, 1),
        (6, 10),
        (8, "host"),
    )
    metadata = message((2, "jit(f)/add"), (15, 2))
    entry = message(
        (1, "entry"),
        (
            2,
            message(
                (1, "a"), (2, "parameter"), (3, F32), (35, 20), (7, message((3, "x.py"), (4, 9), (15, 1)))
            ),
        ),
        (2, message((1, "b"), (2, "fusion"), (3, F32), (35, 21), (36, b"\x14\x14"), (38, 1), (7, metadata))),
        (
            2,
            message(
                (1, "c"), (2, "all-reduce"), (3, F32), (35, 22), (36, 21), (37, 20), (26, 4), (43, '{"n":1}')
            ),
        ),
        (5, 2),
        (6, 22),
    )
    schedule = message((1, message((1, 2), (2, message((1, bytes([22, 21, 20])))))))
    frames = message(
        (1, "first.py"),
        (1, "second.py"),
        (2, "f"),
        (3, message((1, 1), (2, 1), (3, 11))),
        (3, message((1, 2), (3, 22))),
        (4, message((1, 1))),
        (4, message((1, 2), (2, 1))),
    )
    devices = message((1, 2), (2, 4), (3, message((1, bytes([0, 1])))))
    module = message(
        (1, "jit_f"),
        (2, "entry"),
        (3, body),
        (3, entry),
        (5, 41),
        (6, 2),
        (7, schedule),
        (15, devices),
        (17, frames),
    )
    allocations = [
        message((1, 0), (2, 100), (5, 1), (6, 3), (7, 1)),
        message((1, 1), (2, 200), (12, 1)),
        message((1, 2), (2, 300), (3, 1)),
        message((1, 3), (2, 400), (7, 1), (8, 5)),
        message((1, 4), (2, 500)),
    ]
    return message((1, module), (3, message(*((3, allocation) for allocation in allocations))))


def test_hand_written_module() -> None:
    data = hand_written_module()
    read = Read(data)
    assert read.problems == {}
    assert read.program.program_id == 41
    assert read.module == {
        "module_name": "jit_f",
        "sha256": read.program.module.sha256,
        "entry_computation_id": 2,
        "proto_bytes": len(data),
        "has_schedule": True,
        "has_buffer_assignment": True,
        "replica_count": 2,
        "partition_count": 4,
    }
    # The body is one because a fusion calls it: older files do not mark it.
    assert [
        (row["computation_role"], row["execution_thread"]) for row in read.tables["hlo_computations"]
    ] == [("fusion", "host"), ("entry", None)]
    assert {name: row["position"] for name, row in read.by_name.items()} == {"p": 0, "a": 2, "b": 1, "c": 0}
    sources = {name: (row["source_file"], row["source_line"]) for name, row in read.by_name.items()}
    assert sources == {"p": (None, None), "a": ("x.py", 9), "b": ("second.py", 22), "c": (None, None)}
    assert [read.by_name[name]["is_root"] for name in "pabc"] == [True, False, False, True]
    assert read.by_name["c"]["channel_id"] == 4
    assert read.by_name["c"]["backend_config"] == '{"n":1}'
    assert read.by_name["b"]["op_name"] == "jit(f)/add"
    assert [tuple(row.values()) for row in read.tables["hlo_operands"]] == [
        (21, 0, 20),
        (21, 1, 20),
        (22, 0, 21),
    ]
    assert [tuple(row.values()) for row in read.tables["hlo_calls"]] == [(21, 0, 1)]
    assert [tuple(row.values()) for row in read.tables["hlo_control_edges"]] == [(22, 20)]
    assert [tuple(row.values()) for row in read.tables["hlo_stack_frames"]] == [
        (1, None, "first.py", "f", 11),
        (2, 1, "second.py", None, 22),
    ]
    columns = (
        "allocation_index",
        "allocation_kind",
        "bytes",
        "memory_space",
        "parameter_number",
        "is_live_out",
    )
    assert [tuple(row[column] for column in columns) for row in read.tables["hlo_buffers"]] == [
        (0, "parameter", 100, 0, 3, True),
        (1, "constant", 200, 0, None, False),
        (2, "thread_local", 300, 0, None, False),
        (3, "output", 400, 5, None, True),
        (4, "temporary", 500, 0, None, False),
    ]


def test_the_given_program_id_wins() -> None:
    assert Read(hand_written_module(), program_id=0).program.program_id == 0
    assert Read(one_module(one_instruction())).program.program_id is None


@pytest.mark.parametrize(
    ("instruction", "module_fields", "problem"),
    [
        (one_instruction((3, F32), (36, 99)), [], "dangling_operand"),
        (one_instruction((3, F32), (38, 99)), [], "dangling_called_computation"),
        (one_instruction((3, F32), (7, message((15, 1)))), [], "dangling_stack_frame"),
        (
            one_instruction((3, F32), (7, message((15, 1)))),
            [(17, message((4, message((1, 9)))))],
            "dangling_stack_frame",
        ),
        (
            one_instruction((3, F32)),
            [(7, message((1, message((1, 3), (2, message((1, bytes([1, 9]))))))))],
            "dangling_schedule_id",
        ),
        (
            one_instruction((3, F32)),
            [(7, message((1, message((1, 9), (2, message((1, 1)))))))],
            "dangling_schedule_id",
        ),
        (one_instruction((3, F32)), [(7, message((1, message((1, 3)))))], "unscheduled_instruction"),
        (
            one_instruction((3, F32)),
            [(7, message((1, message((1, 3), (2, message((1, bytes([1, 1]))))))))],
            "repeated_schedule_id",
        ),
        (
            one_instruction((3, F32)),
            [(7, message(*[(1, message((1, 3), (2, message((1, bytes([1]))))))] * 2))],
            "repeated_schedule",
        ),
        (one_instruction((3, F32)), [(17, message((2, "f" * 5000)))], "long_frame_name"),
        (one_instruction((3, F32)), [(6, 9)], "dangling_entry_computation"),
        (message((1, "only"), (35, 2), (3, F32)), [], "dangling_root"),
        (one_instruction((3, F32), (37, 99)), [], "dangling_control_edge"),
        (one_instruction((3, F32), (99, message((2, 1)))), [(22, b"x")], "dangling_payload"),
        (one_instruction((3, F32), (7, message((20, message((1, "x")))))), [], "unread_payload"),
        (
            one_instruction((3, F32)),
            [(3, message((1, "again"), (2, one_instruction((3, F32))), (5, 4), (6, 1)))],
            "duplicate_instruction_id",
        ),
        (one_instruction((3, F32)), [(3, message((1, "again"), (5, 3), (6, 1)))], "duplicate_computation_id"),
    ],
)
def test_what_does_not_fit_together_is_counted_and_kept(
    instruction: bytes, module_fields: list[tuple[int, int | bytes | str]], problem: str
) -> None:
    read = Read(one_module(instruction, *module_fields))
    assert read.problems == {problem: 1}
    assert read.instructions[0]["name"] == "only"
    assert len(read.tables["hlo_operands"]) == (problem == "dangling_operand")
    assert len(read.tables["hlo_calls"]) == (problem == "dangling_called_computation")
    assert len(read.tables["hlo_control_edges"]) == (problem == "dangling_control_edge")
    assert (read.module["entry_computation_id"] is None) == (problem == "dangling_entry_computation")


def test_instructions_outside_the_schedule_come_last() -> None:
    instructions = [(2, message((1, f"i{n}"), (3, F32), (35, n))) for n in range(1, 6)]
    computation = message((1, "entry"), *instructions, (5, 3), (6, 1))
    schedule = message((1, message((1, 3), (2, message((1, bytes([4, 2])))))))
    read = Read(message((1, "m"), (3, computation), (6, 3), (7, schedule)))
    assert {name: row["position"] for name, row in read.by_name.items()} == {
        "i4": 0, "i2": 1, "i1": 2, "i3": 3, "i5": 4,
    }  # fmt: skip
    assert read.problems == {"unscheduled_instruction": 3}


def test_the_first_of_several_computations_with_one_id_has_the_schedule() -> None:
    parts = [
        message(
            (1, f"c{n}"),
            *((2, message((1, f"i{n + m}"), (3, F32), (35, n + m))) for m in (0, 1)),
            (5, 3),
            (6, n),
        )
        for n in (1, 5)
    ]
    schedule = message((1, message((1, 3), (2, message((1, bytes([2, 1])))))))
    read = Read(message((1, "m"), *((3, part) for part in parts), (6, 3), (7, schedule)))
    assert {name: row["position"] for name, row in read.by_name.items()} == {
        "i1": 1,
        "i2": 0,
        "i5": 0,
        "i6": 1,
    }
    assert read.problems == {"duplicate_computation_id": 1}


def test_long_names_of_frames_are_cut() -> None:
    """An instruction refers to its file by number: a long name must not be stored for each of them."""
    location = (3, message((1, 1), (2, 1), (3, 7)))
    index = message((1, "f" * 5000), (2, "g" * 5000), location, (4, message((1, 1))))
    read = Read(one_module(one_instruction((3, F32), (7, message((15, 1)))), (17, index)))
    assert read.instructions[0]["source_file"] == "f" * 4096
    assert read.tables["hlo_stack_frames"][0]["function_name"] == "g" * 4096
    assert read.problems == {"long_frame_name": 2}


def test_text_that_is_not_utf8_is_replaced_and_counted() -> None:
    metadata = message((2, b"jit(\xff)/add"))
    read = Read(one_module(one_instruction((3, F32), (7, metadata), (43, b"\xc3{"))))
    assert read.instructions[0]["op_name"] == "jit(\ufffd)/add"
    assert json.loads(read.instructions[0]["backend_config"]) == "\ufffd{"
    assert read.problems == {"invalid_utf8": 2}


@pytest.mark.parametrize(
    "payload", [message((1, '{"n":2}')), message((2, 1)), message((1, '{"n":2}'), (2, 0))]
)
def test_backend_config_in_a_payload(payload: bytes) -> None:
    instruction = one_instruction((3, F32), (99, payload))
    read = Read(one_module(instruction, (22, "no JSON"), (22, '{"n":2}')))
    assert read.instructions[0]["backend_config"] == '{"n":2}'
    assert read.problems == {}


@pytest.mark.parametrize("config", ['{"a": "\\ud800"}', '{"a": 1', '{"a": "\x1b"}', "[" * 100_000])
def test_backend_config_that_is_no_json_is_kept_as_text(config: str) -> None:
    read = Read(one_module(one_instruction((3, F32), (43, config))))
    stored = read.instructions[0]["backend_config"]
    assert json.loads(stored) == config
    assert duckdb.execute("SELECT json_valid(?)", [stored]).fetchall() == [(True,)]


def test_payloads_that_many_instructions_share_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlo_tables, "_MAX_PAYLOAD_BYTES", 15)
    instructions = [
        (2, message((1, f"i{number}"), (2, "add"), (3, F32), (35, number), (99, message((2, 0)))))
        for number in (1, 2, 3)
    ]
    computation = message((1, "entry"), *instructions, (5, 3), (6, 1))
    read = Read(message((1, "m"), (3, computation), (6, 3), (22, '{"n":2}')))
    assert [row["backend_config"] for row in read.instructions] == ['{"n":2}', '{"n":2}', None]
    assert read.problems == {"too_large_payloads": 1}


def test_groups_beyond_a_million_members_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hlo_tables, "_MAX_MEMBERS", 5)
    pair, four = (message((1, message((1, bytes(group))))) for group in ([0, 1], [0, 1, 2, 3]))
    instructions = [
        message((1, f"r{number}"), (2, "all-reduce"), (3, F32), (35, number), (87, groups))
        for number, groups in enumerate((pair, four, pair), 1)
    ]
    computation = message((1, "entry"), *((2, each) for each in instructions), (5, 3), (6, 1))
    read = Read(message((1, "m"), (3, computation), (6, 3)))
    assert [row["group_set_id"] for row in read.tables["hlo_collectives"]] == [0, None, 0]
    assert [tuple(row.values()) for row in read.tables["hlo_replica_groups"]] == [(0, 0, 0, 0), (0, 0, 1, 1)]
    assert read.problems == {"too_many_replica_groups": 1}


@pytest.mark.parametrize("text", ["{mask = 1 : i64}", "opaque", "NaN x", "[" * 100_000])
def test_backend_config_that_is_no_json_is_a_json_string(text: str) -> None:
    read = Read(one_module(one_instruction((3, F32), (43, text))))
    assert json.loads(read.instructions[0]["backend_config"]) == text


def test_modules_that_differ_in_their_ids_are_equal() -> None:
    buffers = (3, message((3, message((1, 0), (2, 100)))))
    plain = read_program(one_module(one_instruction((3, F32))), None, "a").module
    numbered = [
        read_program(one_module(one_instruction((3, F32)), (5, number), (23, 100 + number)), None, "b")
        for number in (7, 8)
    ]
    assert [program.program_id for program in numbered] == [7, 8]
    assert {program.module.sha256 for program in numbered} == {plain.sha256}
    others = [
        one_module(one_instruction((3, F32), (26, 1))),
        one_module(one_instruction((3, F32)), (500, 1)),
        message((1, one_module(one_instruction((3, F32)))), buffers),
    ]
    digests = {read_program(other, None, "c").module.sha256 for other in others}
    assert len(digests | {plain.sha256}) == 4


def test_columns_are_those_of_the_schema() -> None:
    folder = Path(__file__).parents[1] / "sql" / "schema"
    schema = "\n".join(path.read_text() for path in sorted(folder.glob("[0-9]*.sql")))
    types = {"BIGINT": pa.int64(), "VARCHAR": pa.string(), "BOOLEAN": pa.bool_()}
    module = read_program(hand_written_module(), None, "a").module
    for name, table in module_tables(module, Interner(), ProblemCounter(), "a").items():
        body = re.search(rf"CREATE TABLE {name} \((.*?)\n\);", schema, re.DOTALL)
        assert body
        declared = re.findall(r"^    (\w+) ([A-Z]+)", body[1], re.MULTILINE)
        expected = {column: types[kind] for column, kind in declared}
        del expected["module_id"]
        assert dict(zip(table.schema.names, table.schema.types, strict=True)) == expected


# --- damage -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [hand_written_module(), one_module(one_instruction((3, F32)))])
def test_every_truncation_reads_or_is_reported(data: bytes) -> None:
    outcomes: Counter[str] = Counter()
    for length in range(len(data)):
        try:
            outcomes[str(len(Read(data[:length]).instructions))] += 1
        except UnreadableFile:
            outcomes["unreadable"] += 1
    assert outcomes["unreadable"] > length * 0.8


def test_changed_bytes_read_or_are_reported() -> None:
    data = hand_written_module()
    generator = random.Random(7)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(data))] = generator.randrange(256)
        try:
            Read(bytes(damaged))
        except UnreadableFile:
            continue


@pytest.mark.parametrize("data", [b"", b"\x00", b"not a proto at all", message((1, "jit_f"), (2, "entry"))])
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"^test\.pb: .*damaged"):
        Read(data)


@pytest.mark.parametrize("name", ["", "m", "jit_f", "j" * 400, "jit(f) é"])
def test_a_module_proto_is_known_whatever_its_name(name: str) -> None:
    read = Read(one_module(one_instruction((3, F32))).replace(message((1, "m")), message((1, name)), 1))
    assert read.module["module_name"] == name
    assert len(read.instructions) == 1


# --- text ---------------------------------------------------------------------------------------------------


def test_text_gives_the_rows_of_the_proto(module_proto: bytes, read: Read) -> None:
    text = jaxlib_hlo().HloModule.from_serialized_hlo_module_proto(module_proto).to_string()
    converted = Read(text, program_id=12)
    assert converted.program.program_id == 12
    assert converted.module["module_name"] == read.module["module_name"]
    assert converted.listing() == read.listing()
    for name, row in read.by_name.items():
        for column in ("op_name", "is_root", "source_file", "source_line", "shape_bytes", "fusion_kind"):
            assert converted.by_name[name][column] == row[column]


def test_text_has_no_program_id(compiled: Any) -> None:
    assert Read(compiled.as_text()).program.program_id is None


@pytest.mark.parametrize(
    "text",
    ["", "no module", "HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0), newer={'x'=1}\n}\n"],
)
def test_text_that_jaxlib_does_not_accept(text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"^test\.pb: jaxlib cannot parse .*give the \.hlo\.pb"):
        Read(text)


def test_text_that_ends_the_parsers_process() -> None:
    # jaxlib 0.8 and 0.10 fail an assertion on this parameter number instead of raising.
    text = "HloModule m\n\nENTRY e {\n  ROOT p = s32[] parameter(21474836480)\n}\n"
    with pytest.raises(UnreadableFile, match=r"give the \.hlo\.pb"):
        Read(text)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        (None, "needs jaxlib 0.8 or later"),
        ("import os\ndef hlo_module_from_text(text):\n    os.abort()\n", "ended with status -6"),
    ],
)
def test_text_without_a_working_parser(
    binding: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "jaxlib"
    package.mkdir()
    (package / "__init__.py").touch()
    if binding is not None:
        (package / "_hlo.py").write_text(binding)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(UnreadableFile, match=rf"{message}.*give the \.hlo\.pb"):
        Read("HloModule m")


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "program_id"),
    [
        ("module_2011.jit_train_step.sm_9.0a_gpu_after_optimizations.hlo.pb", 2011),
        ("xla_dump/module_0006.jit_train_step.cpu_after_optimizations.txt", 6),
        ("jit_dot(49)", 49),
        ("jit_stage(0)", 0),
        ("jit__psum(9646411105960254074)", 9646411105960254074 - 2**64),
        ("jit_f(18446744073709551616)", None),
        ("optimized_hlo.txt", None),
        ("jit_f", None),
        ("f(3)_clone", None),
    ],
)
def test_program_id_from_name(name: str, program_id: int | None) -> None:
    assert program_id_from_name(name) == program_id


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("module_2011.jit_train_step.sm_9.0a_gpu_after_optimizations.hlo.pb", True),
        ("dump/module_0006.jit_train_step.cpu_after_optimizations.txt", True),
        ("module_0001.jit_f.gfx950_gpu_after_optimizations.hlo.pb", True),
        ("module_2011.jit_f.sm_9.0a_gpu_after_optimizations-buffer-assignment.txt", False),
        ("module_2011.jit_f.sm_9.0a_gpu_after_optimizations-memory-usage-report.pb", False),
        ("module_0006.jit_f.before_optimizations.hlo.pb", False),
        ("module_0006.jit_f.sm_9.0a_gpu_after_spmd_partitioner.txt", False),
        ("module_2011.jit_train_step.thunk_sequence.txt", False),
        ("optimized_hlo_module.pb", False),
    ],
)
def test_is_optimized_dump(name: str, *, expected: bool) -> None:
    assert is_optimized_dump(name) is expected


# --- captures of real machines ------------------------------------------------------------------------------


def modules_of_xspace(path: Path) -> Iterator[bytes]:
    """Every `Hlo Proto` of an XSpace: bytes stats of the event metadata of /host:metadata."""
    for plane in members(path.read_bytes(), 1):
        if members(plane, 2) == [b"/host:metadata"]:
            for entry in members(plane, 4):
                for stat in members(members(entry, 2)[0], 5):
                    yield from members(stat, 6)


@pytest.mark.parametrize(
    ("file", "module_count"),
    [
        ("TraceLens-mi300-jax08_gemm", 16),
        ("TraceLens-mi300-jax08_conv", 8),
        ("TraceLens-mi300-jax_conv_legacy", 8),
        ("TraceLens-te_fused_attn", 9),
        ("xprof-tpu_inference_2", 4),
    ],
)
def test_modules_of_real_captures(file: str, module_count: int) -> None:
    path = SHARED / "data" / "xspace" / f"{file}.xplane.pb"
    if not path.exists():
        pytest.skip("the public captures are not on this machine")
    protos = list(modules_of_xspace(path))
    assert len(protos) == module_count
    for proto in protos:
        module_proto = members(proto, 1)[0]
        read = Read(proto)
        assert read.problems == {}
        assert read.module["has_schedule"]
        assert read.module["has_buffer_assignment"]
        assert len(read.tables["hlo_computations"]) == len(members(module_proto, 3))
        assert len(read.instructions) == sum(len(members(c, 2)) for c in members(module_proto, 3))
        text = jaxlib_hlo().HloModule.from_serialized_hlo_module_proto(module_proto).to_string()
        assert read.listing() == TextModule(text).listing()
