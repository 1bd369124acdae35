-- name: v1._rccl_functions
-- version: 1
-- grain: one row per function of RCCL that communicates, or forms groups of calls or communicators
-- summary: What a call of each function of RCCL does, and what its count counts.
-- evidence: analytical
-- columns:
--   function_name VARCHAR: as traces name it
--   function_role VARCHAR: communicates; group_start and group_end, around calls that are launched together;
--     forms (a communicator, of a number of ranks); splits (a communicator, into others of unknown size)
--   kind VARCHAR: what it communicates, in HLO's terms where HLO has one; NULL where its arguments decide
--   is_per_rank BOOLEAN: its count is of what each of the ranks sends or receives, so that the payload is as
--     many times as much; NULL where it has no count, or one that tells no payload
-- algorithm: The payload is what the tests of NCCL and RCCL call the size of the operation: that of the larger
--   of the two buffers. It is what hlo_collectives.payload_bytes states of the same operation in HLO.

SELECT
    f.function_name AS function_name,
    f.function_role AS function_role,
    f.kind AS kind,
    f.is_per_rank AS is_per_rank
FROM (
    VALUES
    ('ncclAllReduce', 'communicates', 'all-reduce', FALSE),
    ('ncclAllReduceWithBias', 'communicates', 'all-reduce', FALSE),
    ('ncclReduce', 'communicates', 'reduce', FALSE),
    ('ncclBroadcast', 'communicates', 'collective-broadcast', FALSE),
    ('ncclBcast', 'communicates', 'collective-broadcast', FALSE),
    ('ncclAllGather', 'communicates', 'all-gather', TRUE),
    ('ncclReduceScatter', 'communicates', 'reduce-scatter', TRUE),
    ('ncclAllToAll', 'communicates', 'all-to-all', TRUE),
    ('ncclAlltoAll', 'communicates', 'all-to-all', TRUE),
    ('ncclAllToAllv', 'communicates', 'ragged-all-to-all', NULL),
    ('ncclAlltoAllv', 'communicates', 'ragged-all-to-all', NULL),
    ('ncclGather', 'communicates', 'gather', TRUE),
    ('ncclScatter', 'communicates', 'scatter', TRUE),
    ('ncclSend', 'communicates', 'send', FALSE),
    ('ncclRecv', 'communicates', 'recv', FALSE),
    ('mscclRunAlgo', 'communicates', NULL, NULL),
    ('ncclGroupStart', 'group_start', NULL, NULL),
    ('ncclGroupEnd', 'group_end', NULL, NULL),
    ('ncclCommInitRank', 'forms', NULL, NULL),
    ('ncclCommInitRankConfig', 'forms', NULL, NULL),
    ('ncclCommInitRankScalable', 'forms', NULL, NULL),
    ('ncclCommInitAll', 'forms', NULL, NULL),
    ('ncclCommSplit', 'splits', NULL, NULL),
    ('ncclCommShrink', 'splits', NULL, NULL),
    ('ncclCommGrow', 'splits', NULL, NULL)
) AS f (function_name, function_role, kind, is_per_rank)
