"""The agent: one small process that starts, watches and buries everything a trial runs.

`python -m workers.testbed.agent` speaks `wire` messages with the worker that started it. It knows only the standard library, so
that it starts in milliseconds and runs inside the test-bed's namespaces with whatever Python is at hand. The worker's
side is `workers.hosts.processes`.
"""
