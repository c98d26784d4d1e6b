"""The list of all texts of the UI."""

from __future__ import annotations

from tests.house.ui_text import of_python, of_script, of_template


def test_templates_give_blocks_with_inline_elements_and_attributes() -> None:
    page = '<p>{% if a %}The <b>{{ trial.name|title }}</b>\n ends{% endif %}.</p>\n<input placeholder="Any name">'
    texts = [(line, " ".join(text.split())) for line, text in of_template(page)]
    assert [text for text in texts if text[1]] == [(1, "The {trial.name|title} ends ."), (3, "[placeholder] Any name")]


def test_python_gives_sentences_labels_and_choices_but_no_docstrings_and_no_sql() -> None:
    source = """
class State(TextChoices):
    'A state of a trial.'
    RUNNING = "running", "Running"
field = Field(label="Name", url="name")
raise ValueError(f"no host {name!r} is known", "SELECT one FROM two")
"""
    assert sorted(of_python(source)) == [
        (4, "Running"),
        (4, "running"),
        (5, "Name"),
        (6, "no host {name!r} is known"),
    ]


def test_scripts_give_literals_but_no_comments() -> None:
    assert list(of_script('// not "this one"\nlabel = "Show table"; id = "c-time";')) == [(2, "Show table")]
