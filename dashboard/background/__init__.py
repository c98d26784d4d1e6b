"""What is done for a person while they do something else: exports of large tables, changes of many trials."""
