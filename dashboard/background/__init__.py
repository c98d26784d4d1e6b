"""Background tasks of users: exports, bundles, changes of many trials, replays."""
