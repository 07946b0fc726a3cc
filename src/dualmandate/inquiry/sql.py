"""A question as SQL: one SELECT over the table `records`, read by a parser and never handed to a database.

    SELECT [name, …] COUNT(*) | SUM(name) | AVG(name) | MEDIAN(name) | QUANTILE(name, 0.9)
    FROM records [WHERE …] [GROUP BY name, …]

with =, <>, <, <=, >, >=, BETWEEN, IN, IS NULL, NOT, AND, and OR between conditions on one attribute. Every word that is
not of this language is refused by its place before anything is parsed, and every node of what was parsed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from sqlglot import Token, Tokenizer, TokenType, exp, parse
from sqlglot.errors import ParseError, SqlglotError, TokenError

from dualmandate.errors import InvalidQuery, Place, did_you_mean
from dualmandate.inquiry.query import Condition, Joined, Negated, Picked, Query, Ranged, StatisticKind, Unanswered
from dualmandate.population.rational import rational

RECORDS = "records"  # the one table
LONGEST = 10_000  # characters of a question
DEEPEST = 50  # parentheses, and words such as NOT, within each other
AGGREGATES: dict[type[exp.Expression], StatisticKind] = {
    exp.Count: StatisticKind.COUNT,
    exp.Sum: StatisticKind.SUM,
    exp.Avg: StatisticKind.MEAN,
}
AGGREGATES |= {exp.Median: StatisticKind.QUANTILE, exp.Quantile: StatisticKind.QUANTILE}
FORMS = "COUNT(*), SUM(name), AVG(name), MEDIAN(name) or QUANTILE(name, 0.9)"
_ALLOWED = {
    *(TokenType.SELECT, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ALIAS),
    *(TokenType.VAR, TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.NULL),
    *(TokenType.L_PAREN, TokenType.R_PAREN, TokenType.COMMA, TokenType.STAR, TokenType.DASH),
    *(TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.IN, TokenType.BETWEEN, TokenType.IS),
    *(TokenType.EQ, TokenType.NEQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE),
}
_ONE = "ask one question at a time, of the table 'records'"
_DECLARED = "what is answered has the rows of the declared domain, all of them, in its order"
_REFUSED = {  # why, and what instead
    TokenType.HAVING: (
        "which groups it keeps would follow from the records, and say something of them without noise",
        "leave it out: every group is answered, with its interval, and you keep those that you mean",
    ),
    TokenType.ORDER_BY: (_DECLARED, "leave it out, and sort the answer"),
    TokenType.LIMIT: (_DECLARED, "leave it out, and keep the rows that you mean"),
    TokenType.OFFSET: (_DECLARED, "leave it out, and keep the rows that you mean"),
    TokenType.FETCH: (_DECLARED, "leave it out, and keep the rows that you mean"),
    TokenType.DISTINCT: (
        "how many values occur is no sum over records: one record could move it where another would not",
        "count records by the attribute, with GROUP BY",
    ),
    TokenType.JOIN: ("one record could then stand in many rows", _ONE),
    TokenType.UNION: ("one record could then count several times", _ONE),
    TokenType.INTERSECT: ("what two tables share is no sum over records", _ONE),
    TokenType.EXCEPT: ("what two tables do not share is no sum over records", _ONE),
    TokenType.WITH: ("a question has one SELECT, whose sensitivity is known", _ONE),
    TokenType.SEMICOLON: ("a question has one SELECT", _ONE),
    TokenType.LIKE: ("levels are picked by their names", "list the levels: name IN ('…', '…')"),
}
_WORDS = {  # where a dialect has no kind of its own for a word
    "having": TokenType.HAVING,
    "limit": TokenType.LIMIT,
    "fetch": TokenType.FETCH,
    "join": TokenType.JOIN,
}


def parse_sql(text: str) -> Query:
    """The question that a SELECT asks; refused, with the column of the word, where it is none of the language."""
    return _Text(text).query()


@dataclass(frozen=True)
class _Text:
    """The text of one question, and where its words stand."""

    text: str
    _places: dict[str, Place] = field(default_factory=dict)

    def place(self, start: int) -> Place:
        """A place in the text, by the number of its character."""
        before = self.text[:start]
        column = start - (before.rfind("\n") + 1) + 1
        several = "\n" in self.text.strip()
        return Place(line=before.count("\n") + 1 if several else None, key=f"column {column}")

    def refusal(self, what: str, *, why: str, instead: str, at: int) -> InvalidQuery:
        return InvalidQuery(what, why=why, instead=instead, where=self.place(at))

    @cached_property
    def tokens(self) -> list[Token]:
        if not isinstance(self.text, str) or len(self.text) > LONGEST or not self.text.strip():
            raise InvalidQuery(
                "a question of no words, or of too many",
                why=f"a question is one SELECT of at most {LONGEST:,} characters",
                instead="write SELECT COUNT(*) FROM records",
            )
        found: list[Token] | None = None
        with suppress(TokenError, ValueError):
            found = Tokenizer().tokenize(self.text)
        if not found:
            raise self.refusal(
                "a question that cannot be read",
                why="a quote or a comment is not closed, or a character has no meaning in SQL",
                instead="put names of levels in 'single quotes', and names of attributes in \"double\" ones",
                at=0,
            )
        return found[:-1] if found[-1].token_type is TokenType.SEMICOLON else found

    def check_words(self) -> None:
        """Refuse every word that is not of the language, and what is nested too deeply to be read."""
        depth = selects = 0
        for token in self.tokens:
            kind = _WORDS.get(token.text.casefold(), token.token_type) if _bare(token) else token.token_type
            selects += kind is TokenType.SELECT
            depth += (kind in (TokenType.L_PAREN, TokenType.NOT)) - (kind is TokenType.R_PAREN)
            if selects > 1:
                raise self.refusal(
                    "a SELECT within another",
                    why="a question has one SELECT over the declared records, whose sensitivity is known",
                    instead=_ONE,
                    at=token.start,
                )
            if kind in _REFUSED:
                why, instead = _REFUSED[kind]
                raise self.refusal(_shown(token), why=why, instead=instead, at=token.start)
            if kind not in _ALLOWED:
                raise self.refusal(
                    f"{_shown(token)} in a question",
                    why=f"a question says SELECT {FORMS} FROM {RECORDS} [WHERE …] [GROUP BY …], and no other word",
                    instead='leave it out; a name that reads like a word of SQL is put in "double quotes"',
                    at=token.start,
                )
            if depth > DEEPEST:
                raise self.refusal(
                    "conditions within conditions within conditions",
                    why=f"at most {DEEPEST} are read within each other",
                    instead="list the levels that you mean: name IN (…)",
                    at=token.start,
                )

    def query(self) -> Query:
        self.check_words()
        select = self.parsed()
        columns, aggregates = list[exp.Column](), list[exp.Expression]()
        for each in select.expressions:
            plain = each.this if isinstance(each, exp.Alias) else each
            (columns if isinstance(plain, exp.Column) else aggregates).append(plain)
        if len(aggregates) != 1:
            raise self.refusal(
                f"a SELECT of {'no number' if not aggregates else 'several numbers'}",
                why="a question asks for one number, or for one a group: it has one price",
                instead=f"select one of {FORMS}" if not aggregates else "ask for each by itself",
                at=self.start(aggregates[1]) if aggregates else self.start(select),
            )
        self.check_table(select)
        grouped = select.args.get("group")
        by = tuple(map(self.name, self.grouped(grouped))) if grouped is not None else ()
        for column in columns:
            if (name := self.name(column)) not in by:
                raise self.refusal(
                    f"'{name}' is selected, and not grouped by",
                    why="it would show records one by one",
                    instead=f"write GROUP BY {name}, or leave it out",
                    at=self.start(column),
                )
        where = select.args.get("where")
        conditions = () if where is None else (self.condition(where.this),)
        return Query(*self.aggregate(aggregates[0]), by, conditions, self._places)

    def parsed(self) -> exp.Select:
        what, at = "a SELECT that cannot be read", 0
        try:
            found = parse(self.text)
        except ParseError as error:
            known = error.errors[0] if error.errors else {}
            at = self.offset(known.get("line"), known.get("col"))
        except (SqlglotError, RecursionError, ValueError):
            pass
        else:
            statements = [each for each in found if each is not None]
            extra = {"expressions", "from_", "where", "group", "kind", "operation_modifiers"}
            only = statements[0] if len(statements) == 1 else None
            if isinstance(only, exp.Select) and not any(value for key, value in only.args.items() if key not in extra):
                return only
            what = "something other than one SELECT"
        raise self.refusal(
            what,
            why="its words are known, and their order is not",
            instead=f"write SELECT {FORMS} FROM {RECORDS} WHERE … GROUP BY …",
            at=at,
        )

    def offset(self, line: object, column: object) -> int:
        """Where the word ends that the parser stopped at; its own message repeats the text, and is not shown."""
        if not isinstance(line, int) or not isinstance(column, int):
            return 0
        token = next((each for each in self.tokens if (each.line, each.col) == (line, column)), None)
        return 0 if token is None else token.start

    def start(self, node: exp.Expression) -> int:
        """The first character of what was parsed."""
        return min((each.meta["start"] for each in node.walk() if "start" in each.meta), default=0)

    def check_table(self, select: exp.Select) -> None:
        found = select.args.get("from_")
        table = None if found is None else found.this
        if not isinstance(table, exp.Table):
            raise self.refusal(
                "a SELECT from no table",
                why="what is asked is asked of the declared records",
                instead=f"write FROM {RECORDS}",
                at=self.start(select),
            )
        plain = isinstance(table.this, exp.Identifier) and not any(v for k, v in table.args.items() if k != "this")
        if not plain or table.name.casefold() != RECORDS:
            raise self.refusal(
                f"a SELECT from '{table.name}'",
                why="there is one table, of the records that the program declares",
                instead=f"write FROM {RECORDS}",
                at=self.start(table),
            )

    def grouped(self, group: exp.Group) -> list[exp.Expression]:
        extra = next((value for key, value in group.args.items() if key != "expressions" and value), None)
        if extra is not None:
            raise self.unknown(group, "GROUP BY with more than names")
        return list(group.expressions)

    def name(self, node: exp.Expression) -> str:
        """The name of an attribute or a grouping."""
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or node.args.get("table"):
            raise self.unknown(node, "something other than a name")
        self._places.setdefault(node.this.name, self.place(self.start(node)))
        return node.this.name

    def aggregate(self, node: exp.Expression) -> tuple[StatisticKind, str | None, Fraction | None]:
        statistic = AGGREGATES.get(type(node))
        if statistic is None:
            called = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
            raise self.refusal(
                f"'{called}' of the records",
                why="of other functions nobody has worked out how far one record can move them",
                instead=did_you_mean(called.upper(), ("COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE"), f"select {FORMS}"),
                at=self.start(node),
            )
        if isinstance(node, exp.Count):
            if not isinstance(node.this, exp.Star) or node.expressions:
                raise self.refusal(
                    "a COUNT of something",
                    why="records are counted",
                    instead="write COUNT(*), with WHERE name IS NOT NULL for those that have an answer",
                    at=self.start(node),
                )
            return statistic, None, None
        of, level = self.name(node.this), None
        if statistic is StatisticKind.QUANTILE:
            stated = node.args.get("quantile")
            level = Fraction(1, 2) if stated is None else rational(self.literal(stated))
            if not 0 < level < 1:
                raise self.refusal(
                    f"the quantile {level}",
                    why="a quantile divides the records in two parts",
                    instead="state a number between 0 and 1: 0.5 is the median",
                    at=self.start(node),
                )
        return statistic, of, level

    def condition(self, node: exp.Expression) -> Condition:
        if isinstance(node, exp.Paren):
            return self.condition(node.this)
        if isinstance(node, exp.Not):
            return Negated(self.condition(node.this))
        if isinstance(node, exp.And | exp.Or):
            parts = tuple(self.condition(each) for each in _flat(node, type(node)))
            return Joined(parts, alternatives=isinstance(node, exp.Or))
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return Unanswered(self.name(node.this))
        if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
            return Picked(self.name(node.this), tuple(self.literal(each) for each in node.expressions))
        if isinstance(node, exp.Between) and not node.args.get("symmetric"):
            return Ranged(self.name(node.this), self.literal(node.args["low"]), self.literal(node.args["high"]))
        if isinstance(node, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
            return self.comparison(node)
        raise self.unknown(node, "a condition of another kind")

    def comparison(self, node: exp.Binary) -> Condition:
        kind, left, right = type(node), node.this, node.expression
        if not isinstance(left, exp.Column) and isinstance(right, exp.Column):
            turned = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
            kind, left, right = turned.get(kind, kind), right, left
        name, stated = self.name(left), self.literal(right)
        if kind is exp.EQ:
            return Picked(name, (stated,))
        if kind is exp.NEQ:
            return Negated(Picked(name, (stated,)))
        if kind in (exp.LT, exp.LTE):
            return Ranged(name, upper=stated, open_upper=kind is exp.LT)
        return Ranged(name, lower=stated, open_lower=kind is exp.GT)

    def literal(self, node: exp.Expression) -> str:
        """A level, or a number, as it is written."""
        sign, plain = ("-", node.this) if isinstance(node, exp.Neg) else ("", node)
        if not isinstance(plain, exp.Literal) or (sign and plain.is_string):
            raise self.refusal(
                "a comparison with something other than a level or a number",
                why="which levels are picked follows from the question alone",
                instead="write the level in 'single quotes', or a number",
                at=self.start(node),
            )
        stated = sign + plain.name
        self._places.setdefault(stated, self.place(self.start(node)))
        return stated

    def unknown(self, node: exp.Expression, what: str) -> InvalidQuery:
        return self.refusal(
            f"{what} in a question",
            why="conditions are =, <>, <, <=, >, >=, BETWEEN, IN and IS NULL of a declared name, with AND, OR and NOT",
            instead=f"write SELECT {FORMS} FROM {RECORDS} WHERE name = 'level' GROUP BY name",
            at=self.start(node),
        )


def _flat(node: exp.Expression, kind: type[exp.Expression]) -> Iterator[exp.Expression]:
    """The parts of a AND b AND c, from left to right, however many: no deeper than their parentheses."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, kind):
            waiting += [each.args["expression"], each.args["this"]]
        else:
            yield each


def _bare(token: Token) -> bool:
    return token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER)


def _shown(token: Token) -> str:
    return f"'{token.text[:40].upper()}'"
