"""What pages show: one package for each kind of page. Pages, REST, reports and exports read it from here."""
