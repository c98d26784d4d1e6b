"""Experiments side by side: the table, what differs in sentences, the charts."""
