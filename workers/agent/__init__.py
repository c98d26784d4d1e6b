"""Agent: a small process that starts, watches and reaps everything a trial runs.

`python -m workers.testbed.agent` exchanges `rpc` messages with the worker that started it. It imports only the standard library,
so that it starts in milliseconds and runs inside the test-bed's namespaces with any Python. The worker's side is
`workers.hosts.processes`.
"""
