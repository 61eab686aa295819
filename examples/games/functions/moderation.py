"""What the moderators of the chat look for."""

import re

from mainstem import function

BAD_WORDS = ("noob", "trash", "cheater")
# players write n00b and tr4sh
LOOK_ALIKES = str.maketrans("013457@$", "oieastas")


@function
def bad_word(text: str) -> str | None:
    """The first bad word of a message; None when it is clean."""
    for word in re.split(r"\W+", text.lower().translate(LOOK_ALIKES)):
        if word in BAD_WORDS:
            return word
    return None
