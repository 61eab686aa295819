"""A place among the tokens of one statement, and the steps that a parser takes from there."""

from __future__ import annotations

from mainstem.definitions.keywords import near_keyword
from mainstem.definitions.lexer import Source, T, Token
from mainstem.errors import MainstemError


class Cursor:
    """Reads tokens one by one; each refusal is an error at the token that did not fit."""

    def __init__(self, source: Source, tokens: tuple[Token, ...]) -> None:
        self.source = source
        self.tokens = tokens
        self.index = 0
        end = tokens[-1].end
        self._end = Token(T.END, "", end, end)

    @property
    def current(self) -> Token:
        """The next token, or the end."""
        return self.peek(0)

    @property
    def rest(self) -> tuple[Token, ...]:
        """The tokens from here on."""
        return self.tokens[self.index :]

    def peek(self, ahead: int) -> Token:
        """A token further on, or the end."""
        at = self.index + ahead
        return self.tokens[at] if at < len(self.tokens) else self._end

    def at(self, *words: str) -> bool:
        """True when the next tokens are these keywords or symbols."""
        return all(self.peek(i).upper == word for i, word in enumerate(words))

    def accept(self, *words: str) -> bool:
        """Step over these keywords or symbols if they come next."""
        if self.at(*words):
            self.index += len(words)
            return True
        return False

    def expect(self, *words: str) -> None:
        """Step over these keywords or symbols, which must come next."""
        for word in words:
            if not self.accept(word):
                raise self.unexpected(word)

    def take(self) -> Token:
        """The next token; the cursor steps over it."""
        token = self.current
        self.index += 1
        return token

    def take_word(self, what: str) -> Token:
        """An unquoted word."""
        if self.current.kind is not T.WORD:
            raise self.unexpected(what)
        return self.take()

    def take_name(self, what: str) -> Token:
        """A word or a quoted name."""
        if self.current.kind not in (T.WORD, T.QUOTED):
            raise self.unexpected(what)
        return self.take()

    def take_number(self) -> int:
        """A whole number."""
        token = self.current
        if token.kind is not T.NUMBER or not (token.text.isascii() and token.text.isdigit()):
            raise self.unexpected("a number")
        if len(token.text) > 9:
            raise self.source.syntax(f'the number "{token.text}" is too large', token.start)
        self.index += 1
        return int(token.text)

    def take_path(self, what: str) -> tuple[str, int]:
        """A dotted name as one string, and where it begins."""
        first = self.take_name(what)
        parts = [first.name]
        while self.accept("."):
            parts.append(self.take_name(what).name)
        return ".".join(parts), first.start

    def take_string(self, what: str) -> str:
        """A string literal; a doubled quote inside it is a quote."""
        if self.current.kind is not T.STRING:
            raise self.unexpected(what)
        token = self.take()
        value = token.value
        for following in self.rest:
            if following.kind is not T.STRING or following.start != token.end:
                break
            token = self.take()
            value += token.text[0] + token.value
        return value

    def finish(self) -> None:
        """The statement must end here."""
        if self.current.kind is not T.END:
            raise self.unexpected("the end of the statement")

    def unexpected(self, wanted: str) -> MainstemError:
        """The error that something else was expected at the next token."""
        token = self.current
        if token.kind is T.END:
            return self.source.syntax(
                f"the statement ends too early: {wanted} was expected", token.start
            )
        return self.source.syntax(
            f'unexpected "{token.text}": {wanted} was expected', token.start, near_keyword(token)
        )
