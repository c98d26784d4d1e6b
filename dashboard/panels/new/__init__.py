"""The form of new experiments: draft, fields, proposal and preview."""
