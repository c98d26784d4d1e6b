"""Client that reads pages as a browser shows them: words and elements."""

from __future__ import annotations

import re
from typing import Any

from django.test import Client

_KEPT = re.compile(r"(<(pre|textarea|script)\b.*?</\2>)", re.DOTALL)
_JSON = re.compile(r"(?<=>)\s+(?={)|(?<=})\s+(?=</script>)")
_BLOCKS = re.compile(
    r" ?(</?(?:html|head|body|title|main|header|footer|section|article|aside|nav|div|p|h[1-6]|[uod]l|li|d[td]|table"
    r"|caption|thead|tbody|tr|t[hd]|form|fieldset|legend|figure|figcaption|details|summary|dialog|select|optgroup"
    r"|option|button|br)\b(?:\"[^\"]*\"|'[^']*'|[^>\"'])*>) ?"
)


def as_shown(html: str) -> str:
    """Collapse white space as a browser does, and drop it next to block tags."""
    texts, kept = _KEPT.split(html)[::3], [*_KEPT.split(html)[1::3], ""]
    shown = (_BLOCKS.sub(r"\1", re.sub(r" (?=/?>)", "", re.sub(r"[ \t\n\r\f]+", " ", text))) for text in texts)
    return "".join(text + _JSON.sub("", element) for text, element in zip(shown, kept, strict=True))


class Reader(Client):
    """Django's client; the text of a page is `as_shown`."""

    def request(self, **request: Any) -> Any:
        response = super().request(**request)
        if response.get("Content-Type", "").startswith("text/html") and not response.streaming:
            response.content = as_shown(response.content.decode()).encode()
        return response
