-- name: v1._rccl_dtypes
-- version: 1
-- grain: one row per number or name of an element type of RCCL
-- summary: Element types of RCCL, as its header numbers and names them, in HLO's names.
-- evidence: analytical
-- columns:
--   spelling VARCHAR: number of the enumeration in decimal, or one of its names
--   dtype VARCHAR: the type as HLO calls it
--   element_bytes BIGINT (bytes): size of an element

SELECT
    t.spelling AS spelling,
    t.dtype AS dtype,
    CAST(t.element_bytes AS BIGINT) AS element_bytes
FROM (
    VALUES
    ('0', 's8', 1), ('ncclInt8', 's8', 1), ('ncclChar', 's8', 1),
    ('1', 'u8', 1), ('ncclUint8', 'u8', 1),
    ('2', 's32', 4), ('ncclInt32', 's32', 4), ('ncclInt', 's32', 4),
    ('3', 'u32', 4), ('ncclUint32', 'u32', 4),
    ('4', 's64', 8), ('ncclInt64', 's64', 8),
    ('5', 'u64', 8), ('ncclUint64', 'u64', 8),
    ('6', 'f16', 2), ('ncclFloat16', 'f16', 2), ('ncclHalf', 'f16', 2),
    ('7', 'f32', 4), ('ncclFloat32', 'f32', 4), ('ncclFloat', 'f32', 4),
    ('8', 'f64', 8), ('ncclFloat64', 'f64', 8), ('ncclDouble', 'f64', 8),
    ('9', 'bf16', 2), ('ncclBfloat16', 'bf16', 2), ('ncclBFloat16', 'bf16', 2),
    ('10', 'f8e4m3', 1), ('ncclFloat8e4m3', 'f8e4m3', 1), ('ncclFp8E4M3', 'f8e4m3', 1),
    ('11', 'f8e5m2', 1), ('ncclFloat8e5m2', 'f8e5m2', 1), ('ncclFp8E5M2', 'f8e5m2', 1)
) AS t (spelling, dtype, element_bytes)
