-- name: v1._made_kernels
-- version: 1
-- grain: one row per module and name of a kernel that XLA made
-- summary: The first thunk that each kernel of a module is named after.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   kernel_name_id BIGINT: names.name_id of the kernel
--   thunk_index BIGINT: the first thunk whose kernel has that name, unless an earlier one runs the same code
--   shape VARCHAR: result of that thunk's instruction

WITH _first AS (
    SELECT
        t.module_id AS module_id,
        t.kernel_name_id AS kernel_name_id,
        MIN(t.thunk_index) AS first_index
    FROM main.hlo_thunks AS t
    WHERE t.kernel_name_id IS NOT NULL
    GROUP BY
        t.module_id,
        t.kernel_name_id
)
SELECT
    f.module_id AS module_id,
    f.kernel_name_id AS kernel_name_id,
    f.first_index AS thunk_index,
    i.shape AS shape
FROM _first AS f
INNER JOIN main.hlo_thunks AS t
    ON t.module_id = f.module_id
    AND t.thunk_index = f.first_index
INNER JOIN main.hlo_instructions AS i
    ON i.module_id = t.module_id
    AND i.instruction_id = t.instruction_id
