"""Changes from outside: folders of files, envelopes of Debezium, batches of streams."""
