"""State of the installation: processes, services, queue and storage."""
