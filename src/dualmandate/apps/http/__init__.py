"""The service: questions to a project's programs over HTTP, by many people, within the accounts of its ledger."""
