"""One query or many: class, bounds, reasons, costs and hints."""
