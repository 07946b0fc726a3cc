"""What a curator's check says, for eyes inside the wall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dualmandate.population import Confidential, Domain, Protection
from dualmandate.publication.rules import AttributeRule, Rules, ValueRule
from dualmandate.publication.tabulated import CheckFindings

WARNING = "CONFIDENTIAL: these counts say as much as the records. They stay inside: no log, no mail, no copy."
NOTHING_DONE = "Nothing was published, nothing was spent, nothing was written."


def refusing(rules: Rules, names: Sequence[str], domain: Domain) -> Rules:
    """The rules of a check that reports any value of these attributes that is outside or not there."""
    stated = {name: AttributeRule(ValueRule.REFUSE, ValueRule.REFUSE) for name in names}
    for name in stated:
        domain.axis(name)
    return replace(rules, attributes={**rules.attributes, **stated})


@dataclass(frozen=True, eq=False)
class CheckReport:
    """The findings of a check with the rules they met. Its words are confidential."""

    source: str
    rules: Rules
    domain: Domain
    protection: Protection
    findings: CheckFindings = field(repr=False)

    def words(self) -> str:
        """Counts only; no value of a record is in them."""
        found, unit = self.findings, self.protection.unit
        rows = [("attribute", "outside", "rule", "not there", "rule")]
        for attribute in self.domain.attributes:
            rule, name = self.rules.of(attribute), attribute.name
            rows.append((name, f"{found.outside[name]:,}", rule.outside, f"{found.null[name]:,}", rule.null))
        moved = self.rules.unknown_where_impossible
        lines = [WARNING, "", f"{found.records_read:,} records read from '{self.source}'", "", *_laid_out(rows), ""]
        fate = "left out" if moved is None else f"'{moved}' becomes unknown where that is possible"
        lines.append(f"in structural zeros: {found.impossible:,} ({fate})")
        if self.protection.identifier is not None:
            most = self.protection.most_records_per_unit
            lines.append(f"without '{self.protection.identifier}': {found.unidentified:,} (left out)")
            lines.append(f"beyond {most} of one {unit}: {found.excess:,} (left out)")
        if found.refused:
            lines.append(f"refused: {', '.join(found.refused)}")
        return "\n".join([*lines, "", NOTHING_DONE, WARNING])


def report_for_curator(
    box: Confidential[CheckFindings], source: str, *, rules: Rules, domain: Domain, protection: Protection
) -> CheckReport:
    """Open the findings of a check for the curator who asked for it."""
    return CheckReport(source, rules, domain, protection, box.open_for("the curator's own eyes"))


def _laid_out(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
