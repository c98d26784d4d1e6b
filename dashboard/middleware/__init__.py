"""What stands between the network and every view."""
