"""What people and programs read: words, figures, documents with their JSON Schemas, and pages."""
