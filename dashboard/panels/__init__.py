"""Contents of pages, one package for each kind; also for REST and reports."""
