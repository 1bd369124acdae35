-- Schema 5: the facts, as the files state them. Views hold the analysis.
--
-- Conventions
--   * Times are BIGINT picoseconds from the capture's origin, half-open [start_ps, end_ps).
--   * A column that ends in name_id refers to names.name_id: every string of an event is stored once.
--   * Ids of tracks, device events, host events and so on count from 0 within a capture; run, capture,
--     device, artifact and name ids are unique in the warehouse.
--   * A 64-bit unsigned value (program id, run id, stat) is kept as the BIGINT of the same bits.

CREATE TABLE schema_version (
    version INTEGER NOT NULL,
    applied_by VARCHAR NOT NULL           -- tracewh version that wrote it
);

CREATE TABLE runs (
    run_id BIGINT PRIMARY KEY,
    run_name VARCHAR NOT NULL UNIQUE,
    path VARCHAR NOT NULL,                -- absolute path of the directory or file it was read from
    commit_sha VARCHAR,
    commit_source VARCHAR                 -- option, config or git
);

CREATE TABLE unfinished_runs (            -- an ingest loads them, or ended before it was done: kept rows are missing
    run_id BIGINT NOT NULL
);

CREATE TABLE run_labels (
    run_id BIGINT NOT NULL,
    label VARCHAR NOT NULL,
    value VARCHAR NOT NULL
);

CREATE TABLE run_params (                 -- resolved configuration, flattened: model.layers = 56
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    param VARCHAR NOT NULL,
    value VARCHAR                         -- JSON scalars as text; NULL for null
);

CREATE TABLE run_flags (                  -- flags of the compiler, as XLA splits XLA_FLAGS and the like
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    param VARCHAR NOT NULL,               -- of run_params, that holds them
    flag VARCHAR NOT NULL,                -- without dashes: xla_gpu_enable_command_buffer
    value VARCHAR NOT NULL                -- true where none is written; all of a flag that comes again, blanks between
);

CREATE TABLE artifacts (                  -- every file that was found, read or not
    artifact_id BIGINT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    capture_id BIGINT,                    -- the capture it became or was merged into
    path VARCHAR NOT NULL,                -- relative to runs.path, or to its folder where that is a file
    kind VARCHAR NOT NULL,                -- xspace, rocpd, rocprof_csv, hlo_proto, config, timing, ...
    sha256 VARCHAR NOT NULL,              -- of the content, after decompression
    bytes BIGINT NOT NULL,                -- size on disk
    reader VARCHAR NOT NULL,
    reader_version INTEGER NOT NULL,
    status VARCHAR NOT NULL,              -- loaded, merged, recorded (kept as a reference), rejected
    detail VARCHAR
);

CREATE TABLE captures (                   -- one profiler output of one process
    capture_id BIGINT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,          -- the file it was read from
    -- xspace, hlo; rocpd, rocprof_json, rocprof_csv, rpd: one process of ROCm's profilers;
    -- rocprof_compute: counters and metrics of its kernels
    source_kind VARCHAR NOT NULL,
    process_index INTEGER,                -- position of the process in its run, 0 for the first
    process_id BIGINT,                    -- of the operating system
    hostname VARCHAR,
    platform VARCHAR,                     -- cuda, rocm, tpu, cpu
    origin_unix_ns BIGINT,                -- wall clock of time 0; NULL where the source has none
    origin_source_ns BIGINT,              -- source clock of time 0, for clocks that are not the wall's
    -- of the times of its device work, or of its calls where it has none; equal for one process in two formats
    fingerprint VARCHAR
);

CREATE TABLE capture_attributes (         -- versions, profiler options, stats of planes without a device
    capture_id BIGINT NOT NULL,
    attribute VARCHAR NOT NULL,
    value VARCHAR
);

CREATE TABLE devices (                    -- a physical device of a run, whichever source saw it
    device_id BIGINT PRIMARY KEY,
    run_id BIGINT NOT NULL,
    hostname VARCHAR NOT NULL,            -- '' where the source names none
    device_type VARCHAR NOT NULL,         -- GPU, TPU, CPU
    device_ordinal BIGINT NOT NULL,
    device_kind VARCHAR,                  -- NVIDIA H200, AMD gfx950, TPU v6 Lite
    vendor VARCHAR
);

CREATE TABLE device_attributes (          -- what a capture says of a device: clocks, cores, peaks
    capture_id BIGINT NOT NULL,
    device_id BIGINT NOT NULL,
    attribute VARCHAR NOT NULL,
    value VARCHAR
);

CREATE TABLE planes (                     -- planes of an XSpace: a device, the host, or a kind of metadata
    capture_id BIGINT NOT NULL,
    plane_index BIGINT NOT NULL,          -- position in the file
    native_id BIGINT NOT NULL,            -- id that the source gives
    plane_name VARCHAR NOT NULL,
    device_id BIGINT                      -- NULL where it stands for no device
);

CREATE TABLE tracks (                     -- stream, queue or thread
    capture_id BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    track_kind VARCHAR NOT NULL,          -- stream, queue, thread, device_line
    track_name VARCHAR NOT NULL,
    device_id BIGINT,                     -- NULL for host threads
    native_id BIGINT,                     -- stream, queue or thread id of the source
    plane_index BIGINT,                   -- XSpace plane the line belongs to
    full_name VARCHAR,                    -- name behind a display name; NULL where it has no display name
    display_id BIGINT,                    -- of the source; NULL where it gives none
    timestamp_ns BIGINT,                  -- XSpace: what the line's event offsets count from, as written
    duration_ps BIGINT                    -- of the track, where the source states it
);

CREATE TABLE names (                      -- interned strings
    name_id BIGINT PRIMARY KEY,
    name VARCHAR NOT NULL UNIQUE
);

CREATE TABLE op_name_scopes (             -- an op_name split at its slashes, outermost segment first
    name_id BIGINT NOT NULL,
    -- of an op_name that a compiler pass joined from several: which of them, 0 for what all of them begin with;
    -- NULL for an op_name of one operation
    member INTEGER,
    position INTEGER NOT NULL,            -- 1 is the outermost
    segment VARCHAR NOT NULL,             -- as written: transpose(jvp(layers))
    scope VARCHAR NOT NULL,               -- without its transformations: layers; '' for jvp()
    transforms VARCHAR NOT NULL,          -- transpose(jvp; '' for none
    is_last BOOLEAN NOT NULL              -- the primitive, by JAX's convention
);

CREATE TABLE event_metadata (             -- XSpace: what the events that refer to it share
    capture_id BIGINT NOT NULL,
    event_metadata_id BIGINT NOT NULL,    -- unique in the capture
    plane_index BIGINT NOT NULL,
    native_id BIGINT NOT NULL,            -- id in the plane
    name_id BIGINT NOT NULL,
    display_name_id BIGINT                -- what events are shown as; NULL where it gives none
);

CREATE TABLE ops (                        -- HLO op and name stack that events belong to; equal ones share a row
    capture_id BIGINT NOT NULL,
    op_id BIGINT NOT NULL,
    program_id BIGINT,                    -- with hlo_op_name_id: the HLO instruction
    hlo_op_name_id BIGINT,
    hlo_module_name_id BIGINT,
    op_name_id BIGINT,                    -- JAX name stack, where the event itself carries one
    tf_op_name_id BIGINT,                 -- framework op; on TPU the JAX name stack
    annotation_name_id BIGINT,            -- text that the tracer's annotations put on the launch
    nvtx_range_name_id BIGINT,            -- NVTX or ROCTx range around the launch
    unique_hlo_op_id BIGINT,              -- the producer's own number of the HLO op
    graph_node_index BIGINT,              -- of an event of a CUDA graph: its node, in the order of creation
    graph_kernel_name_id BIGINT           -- and what it runs; NULL outside of graphs
);

CREATE TABLE launch_details (             -- where and with what device work is launched; equal launches share a row
    capture_id BIGINT NOT NULL,
    launch_details_id BIGINT NOT NULL,
    context_id BIGINT,
    stream_id BIGINT,
    queue_id BIGINT,
    graph_id BIGINT,                      -- CUDA or HIP graph; NULL for a direct launch
    details_name_id BIGINT,               -- kernel_details or memcpy_details as the source wrote them
    registers_per_thread BIGINT,
    accum_registers_per_thread BIGINT,
    scalar_registers BIGINT,
    static_shared_memory_bytes BIGINT,
    dynamic_shared_memory_bytes BIGINT,
    private_memory_bytes BIGINT,          -- per work-item scratch
    grid_x BIGINT,                        -- in blocks (workgroups)
    grid_y BIGINT,
    grid_z BIGINT,
    block_x BIGINT,
    block_y BIGINT,
    block_z BIGINT,
    occupancy_ratio DOUBLE,               -- theoretical, 0 to 1
    thread_id BIGINT,                     -- of the operating system, that launched; NULL where the call tells it
    kernel_symbol_id BIGINT,              -- joins kernel_symbols
    replay_pass BIGINT,                   -- of a kernel that was run again for more counters
    occupancy_min_grid_size BIGINT,
    occupancy_suggested_block_size BIGINT,
    copy_kind VARCHAR,                    -- H2D, D2H, D2D, P2P, H2H, unknown; NULL for kernels
    copy_bytes BIGINT,                    -- of copies and memsets
    source_device_id BIGINT,              -- where a copy reads; NULL where the source does not say
    target_device_id BIGINT               -- where it writes
);

CREATE TABLE kernel_symbols (             -- kernels as their code objects name them
    capture_id BIGINT NOT NULL,
    kernel_symbol_id BIGINT NOT NULL,     -- unique in the capture
    native_id BIGINT,                     -- of the source
    name_id BIGINT NOT NULL,              -- what its dispatches are called: demangled
    symbol_name_id BIGINT,                -- mangled, as in the code object, with its .kd; NULL where not told
    code_object_id BIGINT
);

CREATE TABLE call_details (               -- what host events say beside their own ids; equal ones share a row
    capture_id BIGINT NOT NULL,
    call_details_id BIGINT NOT NULL,
    category VARCHAR,                     -- rocpd event category; NULL elsewhere
    native_device_id BIGINT,              -- what the source calls the device: ordinal or agent handle
    context_id BIGINT,
    graph_id BIGINT,
    program_id BIGINT,
    details_name_id BIGINT,               -- kernel_details or memcpy_details that a call itself carries
    message_name_id BIGINT                -- text of a marker (ROCTx message)
);

-- Each column of an event costs its space and time for every event, be it NULL: what events share is above.
CREATE TABLE device_events (
    capture_id BIGINT NOT NULL,
    device_event_id BIGINT NOT NULL,
    device_id BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    name_id BIGINT NOT NULL,
    event_metadata_id BIGINT,             -- NULL for sources other than XSpace
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL,
    kind VARCHAR NOT NULL,                -- kernel, memcpy, memset, op, group (what the source calls it)
    -- work: device work, counted. enclosing: a loop or call around work of its own track. derived: a line
    -- that the producer computed from other lines. marker: waits, bookkeeping, times that cannot be true.
    -- serialized: work of a run that counted per dispatch, where kernels run one by one: its times are not those
    -- of the program. Only work is ever summed.
    role VARCHAR NOT NULL,
    correlation_id BIGINT,                -- joins host_events of the same capture
    dispatch_id BIGINT,
    graph_node_id BIGINT,
    execution_id BIGINT,                  -- the runtime's number of this execution of the program
    scope_range_id BIGINT,                -- joins scope_ranges
    op_id BIGINT,                         -- joins ops; NULL where the event tells none
    launch_details_id BIGINT              -- joins launch_details; NULL where the event tells none
);

CREATE TABLE host_events (
    capture_id BIGINT NOT NULL,
    host_event_id BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    name_id BIGINT NOT NULL,
    event_metadata_id BIGINT,             -- NULL for sources other than XSpace
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL,
    correlation_id BIGINT,
    execution_id BIGINT,
    scope_range_id BIGINT,
    call_details_id BIGINT                -- joins call_details; NULL where the event tells none
);

CREATE TABLE call_parents (               -- nesting of the calls that have correlation ids; none for the outermost
    capture_id BIGINT NOT NULL,
    correlation_id BIGINT NOT NULL,
    parent_correlation_id BIGINT NOT NULL
);

CREATE TABLE graph_launches (             -- CUDA or HIP graph launches that the source records as such
    capture_id BIGINT NOT NULL,
    device_event_id BIGINT NOT NULL,      -- the enclosing event
    kernel_dispatch_count BIGINT          -- kernels that it ran, by the source
);

CREATE TABLE memory_allocations (         -- what the runtime allocated and freed, in the order of the source
    capture_id BIGINT NOT NULL,
    memory_allocation_id BIGINT NOT NULL,
    track_id BIGINT NOT NULL,             -- the thread
    device_id BIGINT,                     -- NULL where the source does not say: of a free, or of host memory
    operation VARCHAR NOT NULL,           -- alloc, free, realloc, reclaim
    memory_level VARCHAR NOT NULL,        -- real, virtual, scratch
    address BIGINT,                       -- the bits of the pointer
    bytes BIGINT,                         -- 0 for a free
    queue_id BIGINT,
    stream_id BIGINT,
    flags BIGINT,                         -- of scratch
    correlation_id BIGINT,                -- of the call around it
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL
);

CREATE TABLE pc_samples (                 -- program counters of waves, as sampled
    capture_id BIGINT NOT NULL,
    pc_sample_id BIGINT NOT NULL,
    sampling_method VARCHAR,              -- host_trap, stochastic
    sample_ps BIGINT NOT NULL,
    device_id BIGINT,
    dispatch_id BIGINT,                   -- joins device_events.dispatch_id
    correlation_id BIGINT,
    execution_mask BIGINT,                -- lanes that were on: the bits
    code_object_id BIGINT,
    code_object_offset_bytes BIGINT,
    wave_in_group BIGINT,
    instruction_name_id BIGINT,           -- its text; NULL where the source does not decode it
    comment_name_id BIGINT,               -- source line, where the code object tells it
    was_issued BOOLEAN,
    instruction_type VARCHAR,
    stall_reason VARCHAR,                 -- why it was not issued
    wave_count BIGINT                     -- waves on the compute unit
);

CREATE TABLE host_flows (                 -- work that a host event hands over or takes up
    capture_id BIGINT NOT NULL,
    host_event_id BIGINT NOT NULL,
    producer_type BIGINT,                 -- _pt, _p: hands work over to ...
    producer_id BIGINT,
    consumer_type BIGINT,                 -- _ct, _c: ... the event that takes it up
    consumer_id BIGINT
);

CREATE TABLE scope_ranges (               -- nesting of the host scopes that scope_range_id refers to
    capture_id BIGINT NOT NULL,
    scope_range_id BIGINT NOT NULL,
    parent_scope_range_id BIGINT NOT NULL
);

CREATE TABLE event_stats (                -- what has no typed column
    capture_id BIGINT NOT NULL,
    owner VARCHAR NOT NULL,               -- device_event, host_event, event_metadata, plane, capture, ...
    owner_id BIGINT NOT NULL,             -- id of the owner; for capture the row of the source
    stat_name_id BIGINT NOT NULL,
    -- double, uint64, int64, string, ref, bytes, compressed, none; gzip: long bytes, stored compressed
    value_type VARCHAR NOT NULL,
    int_value BIGINT,
    double_value DOUBLE,
    value_name_id BIGINT,                 -- string and ref
    bytes_value BLOB
);

CREATE TABLE steps (                      -- step annotations of the host; device windows are in v1.steps
    capture_id BIGINT NOT NULL,
    step_id BIGINT NOT NULL,
    host_event_id BIGINT,                 -- the annotation
    step_num BIGINT NOT NULL,
    name_id BIGINT NOT NULL,
    track_id BIGINT NOT NULL,
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL,
    -- step_trace_annotation; roctx, of a ROCm profiler; marker: another range of an XSpace that is named as a step
    source VARCHAR NOT NULL
);

CREATE TABLE step_choices (               -- what the user calls the steps of a run
    run_id BIGINT PRIMARY KEY,
    marker_pattern VARCHAR,               -- of the host events that mark them; NULL: those that views find
    first_step BIGINT,                    -- steps below are left out; NULL for none
    last_step BIGINT                      -- steps above
);

-- What the pattern of a run matches is kept, since engines differ in how they read a pattern from a table.
CREATE TABLE step_marker_texts (          -- names of host events, and texts of markers, that mark steps of the run
    run_id BIGINT NOT NULL,
    name_id BIGINT NOT NULL,
    stated_num BIGINT                     -- the first group of the pattern that is an integer
);

CREATE TABLE numbered_marks (             -- rows of v1._numbered_marks, kept: marks that are no annotations
    capture_id BIGINT NOT NULL,
    host_event_id BIGINT,                 -- NULL for an execution that the device tells
    track_id BIGINT,
    device_id BIGINT,                     -- of such an execution; NULL where it is one of all devices
    execution_id BIGINT,
    name_id BIGINT NOT NULL,              -- the text that matches, or the program
    step_num BIGINT NOT NULL,
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL,
    mark_source VARCHAR NOT NULL          -- marker, program_run
);

CREATE TABLE flow_chains (                -- rows of v1._flow_chains, kept: where work comes from, over several threads
    capture_id BIGINT NOT NULL,
    host_event_id BIGINT NOT NULL,        -- that takes the work up
    track_id BIGINT NOT NULL,
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL,
    handed_ps BIGINT NOT NULL,            -- when it is handed over: each such event begins a chain of its own
    hop BIGINT NOT NULL,                  -- 1 for the event that hands it over, 2 for that its thread had it from
    from_track_id BIGINT NOT NULL,
    from_ps BIGINT NOT NULL,
    carrier_start_ps BIGINT               -- of the range in which that thread works for another; NULL for none
);

CREATE TABLE hlo_programs (               -- which module a process ran under which program id
    capture_id BIGINT NOT NULL,
    program_id BIGINT NOT NULL,           -- with the name of an instruction: the op that events refer to
    module_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL           -- the file it was read from
);

CREATE TABLE hlo_modules (                -- what a compiler made; equal modules of any runs are one
    module_id BIGINT PRIMARY KEY,
    module_name VARCHAR NOT NULL,
    -- of the reader's version and the content without the ids that number compilations; NULL for a module that
    -- has problems: each capture that ran it has its own, and the problems
    sha256 VARCHAR,
    proto_bytes BIGINT NOT NULL,          -- size of the serialized message
    entry_computation_id BIGINT,
    has_schedule BOOLEAN NOT NULL,
    has_buffer_assignment BOOLEAN NOT NULL,
    replica_count BIGINT,
    partition_count BIGINT
);

CREATE TABLE hlo_computations (
    module_id BIGINT NOT NULL,
    computation_id BIGINT NOT NULL,
    computation_name VARCHAR NOT NULL,
    -- entry, fusion, reducer, while_body, while_condition, branch, call, async, other
    computation_role VARCHAR NOT NULL,
    root_instruction_id BIGINT,
    execution_thread VARCHAR,
    executions BIGINT,                    -- in one run of the program; NULL where a loop or branch is not known
    loop_depth BIGINT NOT NULL,           -- number of loops around it
    trip_count BIGINT,                    -- of the innermost of them; NULL without one, or where not known
    -- equal for computations that do the same: of instructions, shapes with layouts, attributes and constants;
    -- not of names, numbers, metadata and configurations of the backend
    structure_hash VARCHAR
);

CREATE TABLE hlo_instructions (
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,       -- unique in its module
    computation_id BIGINT NOT NULL,
    position BIGINT NOT NULL,             -- in the schedule where there is one, else as stored
    name_id BIGINT NOT NULL,              -- instruction name; hlo_op of events refers to it
    opcode VARCHAR NOT NULL,
    op_name_id BIGINT,                    -- metadata op_name: the JAX name stack
    inferred_op_name_id BIGINT,           -- name stack of another instruction, where its own tells none
    -- own; root, inner: of the computation that it fuses or calls; operand, user: of what it takes or gives data;
    -- NULL for none
    op_name_source VARCHAR,
    neighbour_op_name_id BIGINT,          -- of a collective: name stack of what its data is for, or comes from
    shape VARCHAR NOT NULL,               -- HLO text form: bf16[2,128]{1,0}
    element_type VARCHAR,                 -- of an array shape; NULL for tuples
    element_count BIGINT,                 -- summed over tuple elements
    shape_bytes BIGINT,                   -- summed over tuple elements; NULL where a size is unknown
    is_root BOOLEAN NOT NULL,
    parameter_number BIGINT,              -- of a parameter
    tuple_index BIGINT,                   -- of a get-tuple-element
    fusion_kind VARCHAR,
    custom_call_target VARCHAR,
    channel_id BIGINT,
    operand_count BIGINT NOT NULL,
    stack_frame_id BIGINT,                -- joins hlo_stack_frames
    source_file VARCHAR,                  -- innermost stack frame
    source_line BIGINT,
    backend_config VARCHAR                -- JSON; what is no JSON, as a JSON string
);

CREATE TABLE hlo_operands (
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    operand_index BIGINT NOT NULL,
    operand_instruction_id BIGINT NOT NULL
);

CREATE TABLE hlo_control_edges (          -- the order of instructions that no data asks for
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    predecessor_instruction_id BIGINT NOT NULL
);

CREATE TABLE hlo_calls (                  -- computations that an instruction calls
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    call_index BIGINT NOT NULL,
    computation_id BIGINT NOT NULL
);

CREATE TABLE hlo_thunks (                 -- what the runtime of a GPU runs for the instructions, in its order
    module_id BIGINT NOT NULL,
    thunk_index BIGINT NOT NULL,          -- as XLA numbers them; command_buffer_71 begins with number 71
    -- kernel, copy, library, collective, dynamic_slice, nested_copy, loop, branch, async_start, async_done, other
    thunk_kind VARCHAR NOT NULL,
    computation_id BIGINT NOT NULL,       -- whose sequence it belongs to
    instruction_id BIGINT NOT NULL,
    kernel_name_id BIGINT,                -- of its kernel, unless an earlier thunk runs the same code
    node_position BIGINT NOT NULL         -- nodes that a graph of the sequence would have before it
);

CREATE TABLE hlo_stack_frames (           -- where in the Python source an instruction was traced
    module_id BIGINT NOT NULL,
    stack_frame_id BIGINT NOT NULL,
    parent_frame_id BIGINT,               -- its caller
    source_file VARCHAR,
    function_name VARCHAR,
    source_line BIGINT
);

CREATE TABLE hlo_costs (                  -- of one execution of each instruction; those of fusions include their bodies
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    flops BIGINT,                         -- NULL where it is unknown
    transcendentals BIGINT,               -- exponentials, logarithms, ...; not part of flops
    bytes_accessed BIGINT,                -- read and written, as if nothing were cached
    cost_evidence VARCHAR,                -- compiler: XLA's own rules; analytical: a formula for the library call
    cost_rule VARCHAR NOT NULL,           -- which rule or formula: dot, fusion, cublas_gemm, ...
    cost_note VARCHAR                     -- why a number is NULL, or in what way it is a bound
);

CREATE TABLE hlo_flops (                  -- the FLOPs of hlo_costs by what computes them; none where they are 0 or unknown
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    unit VARCHAR NOT NULL,                -- matrix: products, convolutions and library calls; vector: the rest
    element_type VARCHAR,                 -- of the operands, in XLA's words; f8 or tf32 of an algorithm
    matmul_precision VARCHAR,             -- default, high, highest or algorithm; NULL for vector units
    flops BIGINT NOT NULL
);

CREATE TABLE hlo_collectives (            -- instructions that communicate; a wrapper and what it wraps both
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    collective_kind VARCHAR NOT NULL,     -- all-reduce, all-gather, ..., without -start and -done
    is_done BOOLEAN NOT NULL,             -- it ends what another instruction started
    payload_bytes BIGINT,                 -- per device: of all-gather the result, else the operands
    group_size BIGINT,                    -- devices that communicate; NULL where groups differ or are unknown
    group_mode VARCHAR,                   -- what the members of the groups are: replicas, partitions or devices
    group_set_id BIGINT,                  -- joins hlo_replica_groups; NULL where the groups are unknown
    unknown_reason VARCHAR                -- why a number is NULL
);

CREATE TABLE hlo_replica_groups (         -- groups of collectives; of a permutation, pairs of source and target
    module_id BIGINT NOT NULL,
    group_set_id BIGINT NOT NULL,
    group_index BIGINT NOT NULL,
    member_index BIGINT NOT NULL,
    member_id BIGINT NOT NULL
);

CREATE TABLE hlo_buffers (                -- buffer allocations of the compiler
    module_id BIGINT NOT NULL,
    allocation_index BIGINT NOT NULL,
    allocation_kind VARCHAR NOT NULL,     -- parameter, constant, output, thread_local, temporary
    bytes BIGINT NOT NULL,
    memory_space BIGINT NOT NULL,
    parameter_number BIGINT,
    parameter_shape_index VARCHAR,        -- which part of the parameter, a tuple: {0,1}
    is_live_out BOOLEAN NOT NULL,
    is_aliased BOOLEAN NOT NULL,          -- a parameter whose memory an output takes over
    is_tuple BOOLEAN NOT NULL
);

CREATE TABLE hlo_logical_buffers (        -- values in memory; those that lie in one allocation share it in time
    module_id BIGINT NOT NULL,
    buffer_id BIGINT NOT NULL,
    instruction_id BIGINT,                -- that defines it
    shape_index VARCHAR NOT NULL,         -- which part of its result
    bytes BIGINT NOT NULL,
    memory_space BIGINT NOT NULL,
    allocation_index BIGINT,              -- joins hlo_buffers
    offset_bytes BIGINT,                  -- in the allocation
    live_from BIGINT,                     -- first and, excluded, last event_index of hlo_heap_events;
    live_until BIGINT,                    -- NULL where no trace has it: parameters are there all the time
    is_live_at_peak BOOLEAN NOT NULL
);

CREATE TABLE hlo_heap_events (            -- the compiler's simulation of the heap, in program order
    module_id BIGINT NOT NULL,
    allocation_index BIGINT NOT NULL,
    event_index BIGINT NOT NULL,
    event_kind VARCHAR NOT NULL,          -- alloc, free, share
    buffer_id BIGINT NOT NULL,
    instruction_id BIGINT,
    canonical_buffer_id BIGINT,           -- of share: the buffer whose memory it takes
    live_bytes BIGINT NOT NULL,           -- after the event
    is_peak BOOLEAN NOT NULL
);

CREATE TABLE counters (                   -- performance counters a capture defines
    capture_id BIGINT NOT NULL,
    counter_id BIGINT NOT NULL,
    device_id BIGINT,
    counter_name VARCHAR NOT NULL,
    description VARCHAR,
    block VARCHAR,
    expression VARCHAR,
    units VARCHAR,
    is_derived BOOLEAN                    -- computed by the profiler from other counters
);

CREATE TABLE counter_values (             -- one value per dispatch and hardware instance
    capture_id BIGINT NOT NULL,
    counter_id BIGINT NOT NULL,
    device_event_id BIGINT,               -- NULL for a value that belongs to no dispatch
    host_event_id BIGINT,                 -- sample, during the dispatch or without one; or event of the driver
    instance BIGINT NOT NULL,             -- hardware instance; where the source names none, in its order
    xcc BIGINT,                           -- accelerator die; NULL where the source names none
    shader_engine BIGINT,
    shader_array BIGINT,
    workgroup_processor BIGINT,
    value DOUBLE
);

CREATE TABLE counter_rules (              -- how values of one counter are made one; the first rule wins
    priority INTEGER PRIMARY KEY,         -- lower is asked first
    pattern VARCHAR NOT NULL,             -- matches a whole counter name
    aggregation VARCHAR NOT NULL,         -- sum, max, mean: over the instances of one dispatch
    unit VARCHAR,                         -- of the value that the profiler gives; NULL for a plain count
    reason VARCHAR NOT NULL
);

CREATE TABLE counter_formulas (           -- what is derived from counters
    formula_id VARCHAR PRIMARY KEY,       -- gfx942.memory_read_bytes
    architecture VARCHAR NOT NULL,        -- gfx90a, gfx942, gfx950; any: where it has none of its own
    derived_name VARCHAR NOT NULL,        -- memory_read_bytes, matrix_flops_bf16, ...
    unit VARCHAR NOT NULL,
    scale DOUBLE NOT NULL,                -- of the sum of its terms
    source VARCHAR NOT NULL,
    caveat VARCHAR NOT NULL               -- what it counts too much, or too little
);

CREATE TABLE counter_formula_terms (      -- scale * sum(factor * counter) / sum(factor * counter * attribute)
    formula_id VARCHAR NOT NULL,
    part VARCHAR NOT NULL,                -- numerator, denominator: without one it is 1
    counter_name VARCHAR NOT NULL,
    factor DOUBLE NOT NULL,
    device_attribute VARCHAR,             -- of device_attributes; NULL for none
    is_required BOOLEAN NOT NULL          -- else it counts as 0 where it was not collected
);

CREATE TABLE kernel_metrics (             -- metrics that rocprof-compute derived, as it states them
    capture_id BIGINT NOT NULL,
    kernel_name_id BIGINT,                -- NULL for the whole workload
    metric_group VARCHAR NOT NULL,        -- its table
    metric_name VARCHAR NOT NULL,
    metric_id VARCHAR,                    -- 17.1.5: its place in the tool's report
    description VARCHAR,
    value_name VARCHAR NOT NULL,          -- Avg, Min, Max, Peak, ...
    unit VARCHAR,
    value DOUBLE
);

CREATE TABLE memory_samples (
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    device_id BIGINT,                     -- NULL for compiler figures, which hold for every device
    sample_label VARCHAR NOT NULL,        -- when or of what: after_timed_steps, jit_train_step
    kind VARCHAR NOT NULL,                -- argument, output, alias, temporary, bytes_in_use, peak_bytes_in_use, ...
    bytes BIGINT NOT NULL,
    evidence VARCHAR NOT NULL             -- compiler or measured
);

CREATE TABLE memory_profile_samples (      -- what was live when a device memory profile was saved
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    sample_index BIGINT NOT NULL,
    device_id BIGINT,                     -- NULL where no label names one device of the run: of executables
    device_label VARCHAR,                 -- as written: cuda:0
    kind VARCHAR,                         -- buffer, executable
    allocation_count BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    stack_id BIGINT NOT NULL              -- joins memory_profile_frames of the same artifact
);

CREATE TABLE memory_profile_frames (
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    stack_id BIGINT NOT NULL,
    frame_index BIGINT NOT NULL,          -- 0 is the innermost
    function_name VARCHAR,
    source_file VARCHAR,
    source_line BIGINT,
    function_line BIGINT,                 -- where the function begins
    address BIGINT                        -- the bits of the pointer; NULL for Python
);

CREATE TABLE timing_samples (             -- step times taken outside the profiler, and the run's own log
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    sample_index BIGINT NOT NULL,
    step_num BIGINT,
    -- step_time_s; compile_time_s, checkpoint_time_s, evaluation_time_s and input_stall_s, which are no part of a
    -- step; tokens_per_s_per_device, tflops_per_device, total_weights and loss, and what else a log states
    metric VARCHAR NOT NULL,
    value DOUBLE NOT NULL,
    is_profiled BOOLEAN,                  -- NULL where the source does not say
    is_warmup BOOLEAN                     -- NULL where the source does not say
);

CREATE TABLE model_flop_ledger (          -- useful FLOPs of an optimizer update over all devices, as a user states them
    run_id BIGINT NOT NULL,
    artifact_id BIGINT NOT NULL,
    component VARCHAR NOT NULL,           -- total where only that is stated
    useful_flops DOUBLE NOT NULL,
    formula VARCHAR                       -- NULL where none is stated
);

CREATE TABLE model_keys (                 -- what parameters of a configuration say of the model
    param VARCHAR NOT NULL,               -- as in run_params
    dimension VARCHAR NOT NULL,           -- the one name for it: width, layers, kv_heads, ...
    preference INTEGER NOT NULL           -- of several that a configuration has, the lowest counts
);

CREATE TABLE model_words (                -- what words in a configuration mean
    dimension VARCHAR NOT NULL,           -- what the word says: dtype, activation_matrices, attention_keys, ...
    word VARCHAR NOT NULL,                -- as in run_params.value
    meaning VARCHAR NOT NULL
);

CREATE TABLE device_peaks (               -- ceilings, with where they come from; ids up to 1000 are shipped ones
    peak_id BIGINT NOT NULL,
    run_id BIGINT,                        -- of a user's peak of one run; NULL for every run
    capture_id BIGINT,                    -- that measured it; NULL for what holds for every device of a kind
    device_pattern VARCHAR NOT NULL,      -- LIKE pattern on devices.device_kind or device_products.product
    quantity VARCHAR NOT NULL,            -- matrix_flops_per_s (dense), vector_flops_per_s, bytes_per_s
    memory_level VARCHAR,                 -- HBM, MALL, L2, L1, L0, LDS (shared memory), network (all links, one way)
    dtype VARCHAR,                        -- fp64, fp32, tf32, xf32, bf16, fp16, fp8, mxfp8, fp6, fp4, int8, ...
    peak_kind VARCHAR NOT NULL,           -- spec, achievable, measured
    value DOUBLE NOT NULL,                -- operations or bytes per second
    clock_mhz DOUBLE,                     -- at which value holds; NULL where that is not stated
    -- compute units, SMs or TensorCores of the whole device that value holds for; NULL where they do not matter
    core_count INTEGER,
    source VARCHAR NOT NULL,
    stated_on DATE                        -- date of the source; NULL where it bears none
);

CREATE TABLE device_products (            -- which products a kind of device can be, and what tells them apart
    product VARCHAR NOT NULL,             -- as shipped rows of device_peaks have it; those without peaks too
    device_pattern VARCHAR NOT NULL,      -- LIKE pattern on devices.device_kind
    core_count INTEGER NOT NULL,          -- compute units, SMs or TensorCores of a whole device
    clock_mhz DOUBLE,                     -- highest clock; NULL where that tells no products apart
    memory_bytes BIGINT NOT NULL,         -- of a whole device; what a capture states is up to a tenth off
    part_kind VARCHAR                     -- xcd8, xcd6: equal parts; mig; core: a TensorCore each; NULL for none
);

-- Rules of the three tables have ids of one sequence. Those of a run are asked before those of every run, then a
-- lower priority before a higher one, then a lower id before a higher one; the first that matches wins. A pattern is
-- a regular expression that all engines agree on, and matches a whole text.

CREATE TABLE phase_rules (                -- which segment of an op_name means which phase
    rule_id BIGINT NOT NULL,
    run_id BIGINT,                        -- NULL for a rule of every run
    artifact_id BIGINT,                   -- the file of the run that it is from; NULL for none
    vocabulary VARCHAR NOT NULL,          -- whose names it knows: jax, flax, maxtext; user for a user's own
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,             -- of a segment as written: transpose(jvp(layers))
    phase VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);

CREATE TABLE scope_rules (                -- which segments of an op_name are no scope of a model
    rule_id BIGINT NOT NULL,
    run_id BIGINT,
    artifact_id BIGINT,
    vocabulary VARCHAR NOT NULL,
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,             -- of a segment as written
    is_structural BOOLEAN NOT NULL,       -- FALSE: a scope after all
    reason VARCHAR NOT NULL
);

CREATE TABLE component_rules (            -- which scopes belong to which group; the deepest that a rule knows decides
    rule_id BIGINT NOT NULL,
    run_id BIGINT,
    artifact_id BIGINT,
    vocabulary VARCHAR NOT NULL,
    priority INTEGER NOT NULL,
    pattern VARCHAR NOT NULL,             -- of a scope, without transformations
    inside_pattern VARCHAR,               -- of a scope around it; NULL: anywhere
    is_direct BOOLEAN NOT NULL,           -- only of ops directly in the scope, not of those in scopes below it
    component_group VARCHAR NOT NULL,
    -- forward: of ops that no phase rule places; any other: whatever the phase rules say; NULL: what the next rule
    -- that knows the scope says
    phase VARCHAR,
    reason VARCHAR NOT NULL
);

-- Rows of private views of the same names, which are their definitions: kept because other views ask for them again
-- and again. They are computed anew when what they are made of changes: by an ingest, a rule, a choice of steps.

CREATE TABLE op_name_classes (            -- phase and component of each op_name
    rule_scope BIGINT NOT NULL,           -- 0 for the rules of every run, else the run with rules of its own
    op_name_id BIGINT NOT NULL,
    phase VARCHAR,
    component VARCHAR,
    component_group VARCHAR,
    is_loop_scope BOOLEAN NOT NULL,
    is_mixed BOOLEAN NOT NULL
);

CREATE TABLE event_links (                -- the step of each device event, also of steps that the user left out
    capture_id BIGINT NOT NULL,
    device_event_id BIGINT NOT NULL,
    device_id BIGINT NOT NULL,
    step_num BIGINT NOT NULL,
    found_rank INTEGER NOT NULL,
    start_ps BIGINT NOT NULL,
    end_ps BIGINT NOT NULL                -- at most the end of the step's window
);

CREATE TABLE missing_launches (           -- rows of v1._missing_launches, kept: steps with launches without work
    capture_id BIGINT NOT NULL,
    step_num BIGINT NOT NULL,
    missing_launch_count BIGINT NOT NULL
);

CREATE TABLE allocator_events (           -- rows of v1._allocator_events, kept: what allocators took and gave back
    capture_id BIGINT NOT NULL,
    host_event_id BIGINT NOT NULL,
    time_ps BIGINT NOT NULL,
    operation VARCHAR NOT NULL,           -- alloc, free
    allocator VARCHAR,                    -- GPU_0_bfc; NULL where it tells none
    device_type VARCHAR,
    device_ordinal BIGINT,
    memory_space BIGINT,                  -- 0 for the device's own memory, 5 for the host's; NULL where unknown
    address BIGINT,                       -- the bits of the pointer
    requested_bytes BIGINT,
    allocation_bytes BIGINT,              -- NULL for releases on TPU
    live_bytes BIGINT,                    -- after the event, with all that was there before the capture
    reserved_bytes BIGINT,
    free_bytes BIGINT,
    lifetime_peak_bytes BIGINT,           -- since the process began
    op_name VARCHAR,
    shape VARCHAR
);

CREATE TABLE graph_ops (                  -- the HLO instruction of each node of a CUDA graph
    capture_id BIGINT NOT NULL,
    program_id BIGINT NOT NULL,
    buffer_name_id BIGINT NOT NULL,
    node_index BIGINT NOT NULL,
    kernel_name_id BIGINT NOT NULL,
    module_id BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    attribution_source VARCHAR NOT NULL   -- graph_name, graph_position
);

CREATE TABLE aligned_events (             -- the HLO instruction of events that only the order of kernels tells
    capture_id BIGINT NOT NULL,
    device_event_id BIGINT NOT NULL,
    program_id BIGINT NOT NULL,
    hlo_op_name_id BIGINT NOT NULL,
    op_name_id BIGINT,                    -- JAX name stack; NULL where none is known
    opcode VARCHAR,                       -- NULL where the instruction is not in a module at hand
    op_name_source VARCHAR,
    neighbour_op_name_id BIGINT,
    is_collective BOOLEAN NOT NULL,
    attribution_source VARCHAR NOT NULL   -- graph_order, order
);

CREATE TABLE baselines (                  -- named sets of runs that others are compared with
    baseline VARCHAR NOT NULL,
    run_id BIGINT NOT NULL
);

CREATE TABLE run_metrics (                -- rows of v1._run_metrics, kept: what comparisons of runs read
    run_id BIGINT NOT NULL,
    capture_id BIGINT,                    -- the capture that was timed; NULL where the value is of several, or of none
    metric VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,               -- phase, component, kernel, ... that it is of; '' for the whole
    value DOUBLE NOT NULL,
    unit VARCHAR NOT NULL,
    polarity VARCHAR NOT NULL,            -- which values are better: lower, higher; none
    evidence VARCHAR NOT NULL,
    timing VARCHAR,                       -- unprofiled, profiled or unknown; NULL of what is no time
    statistic VARCHAR NOT NULL,           -- median, mean, ...: what value is of its samples
    samples BIGINT NOT NULL
);

CREATE TABLE metric_samples (             -- rows of v1._metric_samples, kept: single steps of metrics that have them
    run_id BIGINT NOT NULL,
    metric VARCHAR NOT NULL,
    timing VARCHAR NOT NULL,
    sample_index BIGINT NOT NULL,
    value DOUBLE NOT NULL
);

CREATE TABLE step_parts (                 -- rows of v1._step_parts, kept: what the device steps of a run consist of
    run_id BIGINT NOT NULL,
    phase VARCHAR NOT NULL,               -- idle for the time without device work
    component_group VARCHAR NOT NULL,
    component VARCHAR NOT NULL,
    op_family VARCHAR NOT NULL,           -- primitive of the op_name, else the HLO opcode
    opcode VARCHAR NOT NULL,
    op VARCHAR NOT NULL,
    kernel VARCHAR NOT NULL,
    exclusive_ps BIGINT NOT NULL,         -- of all device steps; each moment belongs to one row
    sum_ps BIGINT NOT NULL,               -- durations
    event_count BIGINT NOT NULL,
    device_steps BIGINT NOT NULL          -- that the sums are of
);

CREATE TABLE run_modules (                -- rows of v1._run_modules, kept: the optimized step programs of a run
    run_id BIGINT NOT NULL,
    module_name VARCHAR NOT NULL,
    module_id BIGINT NOT NULL,
    capture_id BIGINT NOT NULL,
    program_id BIGINT NOT NULL
);

CREATE TABLE kept_metrics (               -- the runs that rows of the tables above are of
    run_id BIGINT NOT NULL,
    view_version VARCHAR NOT NULL,        -- of v1._run_metrics when they were computed, with its fingerprint
    is_current BOOLEAN NOT NULL           -- no rule, choice of steps or view has changed since
);

CREATE TABLE setting_rules (              -- what a difference in a setting means where runs are compared
    priority INTEGER PRIMARY KEY,         -- lower is asked first; the first rule that matches counts
    source VARCHAR NOT NULL,              -- param, flag, capture_attribute, device_attribute
    pattern VARCHAR NOT NULL,             -- LIKE pattern on a dot and the name without its last index: .mesh.fsdp
    -- config, environment, device, versions, work; left out: identity, result, repeated (another setting tells it)
    role VARCHAR NOT NULL,
    setting VARCHAR,                      -- the one name of what sources call differently; NULL: its own
    effect VARCHAR,                       -- not_comparable, candidate_cause, information; NULL of what is left out
    reason VARCHAR NOT NULL
);

CREATE TABLE comparisons (                -- comparisons that were kept under a name
    comparison VARCHAR PRIMARY KEY,
    base VARCHAR NOT NULL,                -- what the sides are, in words
    head VARCHAR NOT NULL,
    base_runs VARCHAR NOT NULL,           -- names of the runs, as a JSON list
    head_runs VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,             -- of headline_metric, or not_comparable
    headline_metric VARCHAR,              -- NULL where no time of a step is known of both sides
    reasons VARCHAR NOT NULL,             -- why they are not comparable, as a JSON list
    level DOUBLE NOT NULL,                -- how often a verdict may be a false alarm
    min_effect DOUBLE NOT NULL            -- least change that counts, as a ratio
);

CREATE TABLE comparison_verdicts (        -- what such a comparison says of each metric
    comparison VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,
    scope VARCHAR NOT NULL,
    timing VARCHAR NOT NULL,              -- '' of what is no time
    evidence VARCHAR NOT NULL,
    unit VARCHAR NOT NULL,
    base_runs BIGINT NOT NULL,
    head_runs BIGINT NOT NULL,
    base_value DOUBLE,                    -- median over the runs of the side; NULL for none
    head_value DOUBLE,
    ratio DOUBLE,                         -- head to base
    low_ratio DOUBLE,                     -- its interval; NULL where nothing varies
    high_ratio DOUBLE,
    p DOUBLE,                             -- NULL of what is exact; adjusted for the scopes of a metric
    verdict VARCHAR NOT NULL,
    reason VARCHAR NOT NULL
);

CREATE TABLE component_families (         -- groups that short tables tell as one
    component_group VARCHAR PRIMARY KEY,
    component_family VARCHAR NOT NULL
);

CREATE TABLE pattern_matches (            -- known answers of the rules' patterns, to spare time; views do without
    text VARCHAR NOT NULL,
    pattern VARCHAR NOT NULL,
    is_match BOOLEAN NOT NULL
);

CREATE TABLE ingest_problems (            -- every row or file rejected or repaired, with the reason
    run_id BIGINT NOT NULL,
    capture_id BIGINT,
    artifact_id BIGINT,
    problem VARCHAR NOT NULL,             -- short stable name: negative_duration, missing_metadata, ...
    place VARCHAR NOT NULL,               -- plane, line, table or offset
    occurrences BIGINT NOT NULL,
    detail VARCHAR NOT NULL
);

CREATE TABLE view_versions (              -- what the views and macros in this file are
    view_name VARCHAR PRIMARY KEY,
    version INTEGER NOT NULL,
    fingerprint VARCHAR NOT NULL
);
