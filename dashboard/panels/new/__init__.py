"""A new experiment before it is one: the draft, its form, what is proposed, and the preview."""
