"""The repository: experiments, their trials and results."""
