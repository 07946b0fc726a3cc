"""What becomes of a record that does not fit the declared domain, decided by looking at that record alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from dualmandate.errors import InvalidRule, Place
from dualmandate.population import Attribute, Domain, Neighbors, Protection


class ValueRule(StrEnum):
    """What to do with one value that has no level of its own."""

    DROP = "drop"  # leave the record out
    CLAMP = "clamp"  # a number takes the nearest declared one
    MISSING = "missing"  # the record takes the attribute's missing level
    REFUSE = "refuse"  # the curator's check reports it; never while publishing


@dataclass(frozen=True)
class AttributeRule:
    """The rules of one attribute: for values outside its levels, and for values that are not there.

    Under `clamp` a text that is no number has no nearest level: it is treated as one that is not there.
    """

    outside: ValueRule = ValueRule.DROP
    null: ValueRule = ValueRule.DROP


@dataclass(frozen=True)
class Rules:
    """The rules of every attribute (those not named follow `default_rule`), and of records in structural zeros.

    A record in a structural zero is left out, or takes the missing level of the attribute `unknown_where_impossible`
    (and is left out if it is impossible even so). `dropping_is_public` accepts, for replace-one neighbors, that
    whether a record has a cell is not protected.
    """

    attributes: Mapping[str, AttributeRule] = field(default_factory=dict)
    unknown_where_impossible: str | None = None
    dropping_is_public: bool = False

    def of(self, attribute: Attribute) -> AttributeRule:
        return self.attributes.get(attribute.name) or default_rule(attribute)


def default_rule(attribute: Attribute) -> AttributeRule:
    """Numbers with a grid are clamped, other values outside dropped; what is not there takes the missing level."""
    outside = ValueRule.CLAMP if attribute.is_numeric else ValueRule.DROP
    return AttributeRule(outside, ValueRule.DROP if attribute.missing is None else ValueRule.MISSING)


def check_rules(rules: Rules, domain: Domain, protection: Protection, *, checking: bool) -> None:
    """Refuse rules that an attribute cannot follow, before any data are opened."""
    for name in rules.attributes:
        domain.axis(name)
    if protection.identifier is not None and protection.invariants and not checking:
        raise InvalidRule(
            f"units that '{protection.identifier}' identifies, beside totals that are published exactly",
            why="which records of a unit with too many are left out depends on its records, and so would the totals",
            instead="publish from one record a unit without an identifier, or publish the totals with noise",
            where=Place(key="population.identifier"),
        )
    for attribute in domain.attributes:
        check_attribute_rule(rules.of(attribute), attribute, checking=checking)
    if rules.unknown_where_impossible is not None:
        check_unknown(rules.unknown_where_impossible, domain)
    dropping = any(ValueRule.DROP in (rules.of(each).outside, rules.of(each).null) for each in domain.attributes)
    dropping = dropping or _zeros_drop(rules, domain) or protection.identifier is not None  # it may be missing
    if dropping and protection.neighbors is Neighbors.REPLACE_ONE and not (rules.dropping_is_public or checking):
        raise InvalidRule(
            "records may be dropped under replace-one neighbors",
            why="this relation takes the number of records as public, and a record dropped for its values changes it",
            instead="give every attribute a missing level or clamp it, or state dropping_is_public: "
            "whether a record has a cell is then not protected",
            where=Place(key="population.neighbors"),
        )


def check_unknown(name: str, domain: Domain) -> None:
    """Refuse an attribute for impossible records that has no missing level."""
    if domain.attribute(name).missing is None:
        raise _no_missing_level(name)


def check_attribute_rule(rule: AttributeRule, attribute: Attribute, *, checking: bool = False) -> None:
    """Refuse rules that one attribute cannot follow."""
    if ValueRule.REFUSE in (rule.outside, rule.null) and not checking:
        raise InvalidRule(
            f"'{attribute.name}' has the rule 'refuse'",
            why="a publication that fails because of a value tells that the value is there",
            instead="publish with drop, clamp or missing; 'refuse' is for the curator's check",
        )
    if ValueRule.MISSING in (rule.outside, rule.null) and attribute.missing is None:
        raise _no_missing_level(attribute.name)
    if rule.null is ValueRule.CLAMP or (
        rule.outside is ValueRule.CLAMP and not attribute.is_numeric and attribute.edges is None
    ):
        raise InvalidRule(
            f"'{attribute.name}' cannot be clamped",
            why="only a number has a nearest level",
            instead="choose drop or missing",
        )


def _zeros_drop(rules: Rules, domain: Domain) -> bool:
    """Whether a record in a structural zero may be left out: not if every zero spares the missing level it moves to."""
    if rules.unknown_where_impossible is None:
        return bool(domain.structural_zeros)
    axis = domain.axis(rules.unknown_where_impossible)
    return any(axis not in masks or bool(masks[axis][-1]) for masks in domain.all_zero_masks)


def _no_missing_level(name: str) -> InvalidRule:
    return InvalidRule(
        f"'{name}' has no missing level to take",
        why="levels come from the program, never from the data",
        instead=f'declare {name} = {{ …, missing = "unknown" }}, or choose another rule',
    )
