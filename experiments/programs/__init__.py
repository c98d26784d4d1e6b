"""Programs of Rankwire that run on ranks; workloads ship them with the inputs."""
