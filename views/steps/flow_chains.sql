-- name: v1._flow_chains
-- version: 1
-- grain: one row per host event that takes up work, hop and place that the work comes from
-- summary: Where the work that a thread takes up comes from: the thread that hands it over, the one before, ...
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the event that takes the work up
--   track_id BIGINT: its thread
--   start_ps BIGINT (ps): its start
--   end_ps BIGINT (ps): its end
--   handed_ps BIGINT (ps): start of the event that hands it over: where several do so, each begins a chain
--   hop BIGINT: 1 for the event that hands the work over, 2 for that from which its thread had it, ...
--   from_track_id BIGINT: thread of that event
--   from_ps BIGINT (ps): its start
--   carrier_start_ps BIGINT (ps): start of the range in which its thread works for another; NULL outside of any
-- algorithm: Up to six hops: twice what the runtimes of JAX and TPUs were seen to make. They are written out,
--   since recursion would keep a filter on the capture from the tables. main.flow_chains keeps the rows: what a
--   file says never changes, and the views of steps would look it up many times.

WITH _chains AS (
    SELECT
        t.capture_id AS capture_id,
        t.host_event_id AS host_event_id,
        t.track_id AS track_id,
        t.start_ps AS start_ps,
        t.end_ps AS end_ps,
        p1.track_id AS track_1,
        p1.start_ps AS ps_1,
        p1.carrier_start_ps AS carrier_1,
        p2.track_id AS track_2,
        p2.start_ps AS ps_2,
        p2.carrier_start_ps AS carrier_2,
        p3.track_id AS track_3,
        p3.start_ps AS ps_3,
        p3.carrier_start_ps AS carrier_3,
        p4.track_id AS track_4,
        p4.start_ps AS ps_4,
        p4.carrier_start_ps AS carrier_4,
        p5.track_id AS track_5,
        p5.start_ps AS ps_5,
        p5.carrier_start_ps AS carrier_5,
        p6.track_id AS track_6,
        p6.start_ps AS ps_6,
        p6.carrier_start_ps AS carrier_6
    FROM v1._flow_takers AS t
    INNER JOIN v1._flow_producers AS p1
        ON p1.capture_id = t.capture_id
        AND p1.flow_type = t.flow_type
        AND p1.flow_id = t.flow_id
    LEFT JOIN v1._flow_producers AS p2
        ON p2.capture_id = t.capture_id
        AND p2.flow_type = p1.carrier_type
        AND p2.flow_id = p1.carrier_id
    LEFT JOIN v1._flow_producers AS p3
        ON p3.capture_id = t.capture_id
        AND p3.flow_type = p2.carrier_type
        AND p3.flow_id = p2.carrier_id
    LEFT JOIN v1._flow_producers AS p4
        ON p4.capture_id = t.capture_id
        AND p4.flow_type = p3.carrier_type
        AND p4.flow_id = p3.carrier_id
    LEFT JOIN v1._flow_producers AS p5
        ON p5.capture_id = t.capture_id
        AND p5.flow_type = p4.carrier_type
        AND p5.flow_id = p4.carrier_id
    LEFT JOIN v1._flow_producers AS p6
        ON p6.capture_id = t.capture_id
        AND p6.flow_type = p5.carrier_type
        AND p6.flow_id = p5.carrier_id
),
_hops AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        c.track_id AS track_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.ps_1 AS handed_ps,
        h.hop AS hop,
        CASE
            WHEN h.hop = 1 THEN c.track_1
            WHEN h.hop = 2 THEN c.track_2
            WHEN h.hop = 3 THEN c.track_3
            WHEN h.hop = 4 THEN c.track_4
            WHEN h.hop = 5 THEN c.track_5
            WHEN h.hop = 6 THEN c.track_6
        END AS from_track_id,
        CASE
            WHEN h.hop = 1 THEN c.ps_1
            WHEN h.hop = 2 THEN c.ps_2
            WHEN h.hop = 3 THEN c.ps_3
            WHEN h.hop = 4 THEN c.ps_4
            WHEN h.hop = 5 THEN c.ps_5
            WHEN h.hop = 6 THEN c.ps_6
        END AS from_ps,
        CASE
            WHEN h.hop = 1 THEN c.carrier_1
            WHEN h.hop = 2 THEN c.carrier_2
            WHEN h.hop = 3 THEN c.carrier_3
            WHEN h.hop = 4 THEN c.carrier_4
            WHEN h.hop = 5 THEN c.carrier_5
            WHEN h.hop = 6 THEN c.carrier_6
        END AS carrier_start_ps
    FROM _chains AS c
    CROSS JOIN (VALUES (1), (2), (3), (4), (5), (6)) AS h (hop)
)
SELECT DISTINCT
    h.capture_id AS capture_id,
    h.host_event_id AS host_event_id,
    h.track_id AS track_id,
    h.start_ps AS start_ps,
    h.end_ps AS end_ps,
    h.handed_ps AS handed_ps,
    CAST(h.hop AS BIGINT) AS hop,
    h.from_track_id AS from_track_id,
    h.from_ps AS from_ps,
    h.carrier_start_ps AS carrier_start_ps
FROM _hops AS h
WHERE h.from_track_id IS NOT NULL
