"""What the page of a trial shows: its tiles, its wire, its packets, its hosts, its link, and how far all that is to be trusted."""
