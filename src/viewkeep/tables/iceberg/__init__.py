"""Tables of Apache Iceberg, read only: their snapshots as versions like those of Delta tables."""
