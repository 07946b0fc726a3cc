"""The documents that leave, and their JSON Schemas."""
