"""The warehouse: schema, loading, opening, and the engine that installs the versioned views."""
