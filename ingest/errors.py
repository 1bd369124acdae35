"""The one error tree of tracewh; the command line turns it into a message, never a traceback."""


class TracewhError(Exception):
    """Base of every error a user can meet. Its text names the file, the place and the next step."""


class UnreadableFile(TracewhError):
    """The bytes of a file are not what its name or place promises, or are damaged."""


class NothingToIngest(TracewhError):
    """A path holds no artifact that tracewh can read."""


class WarehouseError(TracewhError):
    """The warehouse file cannot be opened, is locked, or has a schema this version does not know."""


class QueryError(TracewhError):
    """A query is wrong, or would change a warehouse that was opened read-only."""


class RecordError(TracewhError):
    """A run cannot be recorded in the place or in the way that was asked for."""
