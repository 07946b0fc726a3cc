"""Measured preferences in words, and as the JSON document `preferences/1`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dualmandate.elicitation.pooling import Pooled
from dualmandate.elicitation.willingness import ParameterEstimates, Willingness, in_words
from dualmandate.population import Calibrated
from dualmandate.population.wording import number
from dualmandate.survey.estimates import Opinions, SurveyEstimates
from dualmandate.survey.findings import MEAN_COST, Finding, Worth

PREFERENCES_VERSION = 1
NO_NOISE = "These numbers are estimated without noise: they protect respondents only by adding many of them up."


def words(measured: SurveyEstimates | Opinions) -> str:
    """What was found, in sentences."""
    if isinstance(measured, Opinions):
        return _opinions_in_words(measured)
    findings, survey = measured.findings, measured.survey
    estimates = findings.estimates
    lines = [
        f"{survey.name}: {findings.respondents:,} respondents, {estimates.observations:,} answers; {findings.model}.",
        "",
        *(_found_in_words(found) for found in measured.found),
        *(_worth_in_words(worth, measured) for worth in findings.worths if worth.attribute not in _stated(measured)),
        *(f"Pooled, {key}: {pooled.explain()}" for key, pooled in measured.pooled.items()),
        *measured.remarks(),
        NO_NOISE,
        "",
        f"log likelihood {estimates.log_likelihood:,.3f}",
        *_estimates_in_words(estimates),
    ]
    return "\n".join(lines)


def document(measured: SurveyEstimates | Opinions) -> dict[str, object]:
    """What was found, as the JSON document `preferences/1`."""
    survey = measured.survey
    head: dict[str, object] = {
        "schema": f"preferences/{PREFERENCES_VERSION}",
        "label": "public",
        "survey": survey.name,
        "kind": survey.file.survey.kind,
        "unit": survey.units.singular,
    }
    if isinstance(measured, Opinions):
        return {
            **head,
            "respondents": measured.respondents,
            "correlations": [
                {
                    "first": one,
                    "second": other,
                    "correlation": found.correlation,
                    "standard_error": found.standard_error,
                    "respondents": int(found.observations),
                }
                for (one, other), found in measured.correlations.items()
            ],
        }
    findings, estimates = measured.findings, measured.findings.estimates
    return {
        **head,
        "respondents": findings.respondents,
        "answers": estimates.observations,
        "model": findings.model,
        "information_utility": survey.file.report.information_utility,
        "log_likelihood": estimates.log_likelihood,
        "estimates": [
            {"name": name, "value": estimates.value(name), "standard_error": estimates.standard_error(name)}
            for name in estimates.names
        ],
        "found": [_found_document(found) for found in measured.found],
        "worths": [
            {
                "attribute": worth.attribute,
                "value": worth.amount.estimate,
                "unit": "USD",
                "standard_error": worth.amount.standard_error,
                "interval": list(worth.amount.interval or ()),
            }
            for worth in findings.worths
        ],
        "pooled": [_pooled_document(key, pooled) for key, pooled in measured.pooled.items()],
        "preferences": [{"key": key, **_number(number)} for key, number in measured.numbers().items()],
        "block": measured.block(),
        "notes": [*measured.remarks(), NO_NOISE],
    }


def _found_in_words(found: Finding) -> str:
    estimate, (low, high) = found.number, found.interval
    base = f", {estimate.time_base}" if estimate.time_base else ""
    what = "A unit of privacy loss costs" if found.key == MEAN_COST else "Accuracy is worth"
    if found.key == MEAN_COST and not estimate.unit.endswith("epsilon"):
        what = "The parameter of the cost of privacy loss is"
    error = "" if estimate.standard_error is None else f"; standard error {number(estimate.standard_error)}"
    return (
        f"{what} {number(estimate.value, 6)} {estimate.unit}{base} ({found.of}; {100 * found.level:g} % interval "
        f"{number(low, 6)} to {number(high, 6)}, {found.method}{error})."
    )


def _stated(measured: SurveyEstimates) -> set[object]:
    """Attributes whose worth was said already, as a number of a program."""
    return {found.place[-1] for found in measured.found}


def _worth_in_words(worth: Worth, measured: SurveyEstimates) -> str:
    amount = worth.amount
    squared = " squared" if measured.survey.file.attributes[worth.attribute].measure == "squared" else ""
    assert amount.estimate is not None
    verb = "for" if amount.estimate >= 0 else "to avoid"
    turned = amount if amount.estimate >= 0 else _turned(amount)
    return f"One respondent would pay {verb} one more unit of '{worth.attribute}'{squared}: {in_words(turned)}."


def _turned(amount: Willingness) -> Willingness:
    assert amount.estimate is not None
    assert amount.interval is not None
    low, high = amount.interval
    return replace(amount, estimate=-amount.estimate, interval=(-high, -low))


def _estimates_in_words(estimates: ParameterEstimates) -> Iterator[str]:
    width = max(len(name) for name in estimates.names)
    for name in estimates.names:
        value, error = estimates.value(name), estimates.standard_error(name)
        yield f"  {name:<{width}}  {value:>13.6g}  (standard error {number(error)})"


def _opinions_in_words(opinions: Opinions) -> str:
    lines = [
        f"{opinions.survey.name}: {opinions.respondents:,} respondents. Correlations behind their answers:",
        *(
            f"  {one} and {other}: {found.correlation:+.3f} (standard error {found.standard_error:.3f})"
            for (one, other), found in opinions.correlations.items()
        ),
        "Agreement has no unit: it prices nothing, so no [preferences] follow from it.",
        NO_NOISE,
    ]
    return "\n".join(lines)


def _number(number: Calibrated) -> dict[str, object]:
    return {
        "value": number.value,
        "unit": number.unit,
        "source": number.source,
        "standard_error": number.standard_error,
        "time_base": number.time_base,
    }


def _found_document(found: Finding) -> dict[str, object]:
    return {
        "key": found.key,
        **_number(found.number),
        "interval": list(found.interval),
        "level": found.level,
        "method": found.method,
        "of": found.of,
    }


def _pooled_document(key: str, pooled: Pooled) -> dict[str, object]:
    return {
        "key": key,
        **_number(pooled.calibrated()),
        "interval": list(pooled.interval()),
        "median": pooled.median,
        "between": pooled.scatter,
        "prior": {"center": pooled.prior.center, "spread": pooled.prior.spread, "source": pooled.prior.source},
        "sources": [_number(source) for source in pooled.sources],
        "conflicts": [
            {"first": pair.first, "second": pair.second, "distance": pair.distance, "probability": pair.probability}
            for pair in pooled.agreement.conflicts
        ],
    }
