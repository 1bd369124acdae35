"""The versioned views: one `.sql` file each, and nothing but SQL."""
