"""The Delta log: entries read and written, versions, what of the protocol is understood."""
