-- How the values that one dispatch has of one counter are made one. A counter is summed over its hardware
-- instances unless a rule says otherwise. `max` is only for clocks of which each accelerator die (XCC) has one:
-- where a file has a single value for a device of several dies, that value is their sum, and v1.counters divides it.
-- Names and expressions: counter_defs.yaml of rocprofiler-sdk.
INSERT INTO main.counter_rules VALUES
    (10, '^GRBM_.*$', 'max', 'cycles',
     'a clock of each accelerator die; they run side by side, so rocprofiler-sdk reduces them by max'),
    (20, '^(FETCH_SIZE|FetchSize|WRITE_SIZE|WriteSize)$', 'sum', 'KiB',
     'bytes divided by 1024, called kilobytes by their description'),
    (30, '^(MfmaFlops(F16|BF16|F32|F64)?|ValuIops|TOTAL_(16|32|64)_OPS)$', 'sum', NULL,
     'derived by the profiler for each instance: its expression reduces nothing'),
    (40, '^(.*(Util|_UTIL|Busy|Stalled|Rate)|ALUStalledByLDS|L2CacheHit|LDSBankConflict|OccupancyPercent|VALUUtilization|Wave(DepWait|IssueWait|Exec)|WAVE_(DEP|ISSUE)_WAIT)$',
     'mean', 'percent', 'derived by the profiler over all instances; percentages do not add'),
    (50, '^(.*(Latency|Insts)|AvgNumActiveThreads|BANDWIDTH_EA|LdsBankConflict|MeanOccupancyPer(Active)?CU|SIMD_UTILIZATION|WaveDuration)$',
     'mean', NULL, 'a quotient that the profiler derives over all instances; quotients do not add'),
    (60, '^.*_(avr|max|min)$', 'mean', NULL,
     'reduced over all instances by the profiler already: one value, and its own mean'),
    (70, '^(CU_NUM|SIMD_NUM|SE_NUM|MAX_WAVE_SIZE)$', 'mean', NULL,
     'a constant of the device'),
    (1000, '^.*$', 'sum', NULL,
     'what instances count adds up; the command processor (CPC, CPF) too, whose shares of time are quotients of sums');
