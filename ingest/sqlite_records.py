"""What the compiled loops over SQLite pages and their callers agree on."""

# What a cell of a record holds. A number of INTEGER; the bits of a FLOAT; of TEXT and BLOB the place in the
# file, moved up by LENGTH_BITS, and the length. MISSING is a column added after the record was written.
NULL, INTEGER, FLOAT, TEXT, BLOB, MISSING = range(6)
LENGTH_BITS = 24

# What a text is that was read as a number.
OTHER_TEXT, HEXADECIMAL = 0, 2

# How a loop ended. ODD is less than 0, as no place is.
ODD, DONE, FULL, SMALL_SPILL = -1, 0, 1, 2

# Pages of a table above each other: the limit of SQLite.
MAX_DEPTH = 20
