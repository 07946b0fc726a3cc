"""A plan as the JSON document `plan/1`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.planning.digest import PLAN_VERSION, digest_of
from dualmandate.program.schema.program import SCHEMA_VERSION
from dualmandate.report.preference_sections import preference_parts

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan

POINTS = 60  # of the frontier, in equal steps of the logarithm, besides the choice itself
REACH = 10.0  # from a tenth of the chosen loss to ten times it


def plan_document(plan: Plan) -> dict[str, object]:
    """Everything that a plan says, in finite numbers; losses also as exact strings."""
    program = plan.program
    return {
        "schema": f"plan/{PLAN_VERSION}",
        "digest": plan.digest,
        "program": {
            "name": program.name,
            "description": program.file.program.description,
            "account": program.file.population.account,
            "unit": program.protection.unit,
            "population_size": program.welfare.population_size,
            "digest": digest_of(plan.exact["program"]),
        },
        "loss": _loss(plan),
        "choice": _choice(plan),
        "mechanism": _mechanism(plan),
        "frontier": _frontier(plan),
        "tables": _tables(plan),
        "groups": _groups(plan),
        "technologies": _technologies(plan),
        "strategies": _strategies(plan),
        "saving": _saving(plan),
        "guarantee": plan.guarantee.document(),
        "regret": _regrets(plan),
        "tornado": _tornado(plan),
        "notes": list(plan.notes),
        **plan.extensions.document(),
        **preference_parts(plan),
        "versions": {"program": SCHEMA_VERSION, "plan": PLAN_VERSION, "dualmandate": _version()},
        "exact": plan.exact,
    }


def _loss(plan: Plan) -> dict[str, object]:
    probability = plan.technology.failure_probability
    return {
        "exact": plan.loss.exact(),
        "amount": float(plan.loss),
        "currency": str(plan.loss.currency),
        "failure_probability": probability,
        "chosen": {"exact": plan.choice.loss.exact(), "currency": str(plan.choice.currency)},
        "allocation": {group: str(share) for group, share in plan.allocation.items()},
    }


def _choice(plan: Plan) -> dict[str, object]:
    """The choice without what left the range of floats: a limit at which welfare is beyond any number."""
    within = tuple(point for point in plan.choice.local_optima if math.isfinite(point.welfare))
    stated = replace(plan.choice, local_optima=within).document()
    numbers = {key: None if value in (math.inf, -math.inf) else value for key, value in stated.items()}
    return {**numbers, "explanation": plan.choice.explain()}


def _mechanism(plan: Plan) -> dict[str, object]:
    table = plan.program.file.mechanism
    measurements = {group: plan.technology.measurements[group].sensitivity for group in plan.allocation}
    return {
        "asked": table.noise,
        "noise": plan.technology.noise,
        "strategy": plan.technology.strategy,
        "measured": table.measured if isinstance(table.measured, str) else [list(group) for group in table.measured],
        "sensitivity": {
            group: {
                "norm": sensitivity.norm,
                "power": str(sensitivity.power),
                "exact": sensitivity.exact,
                "words": str(sensitivity),
            }
            for group, sensitivity in measurements.items()
        },
    }


def _frontier(plan: Plan) -> dict[str, object]:
    points = [point for loss in _losses(plan) if (point := _point(plan, loss)) is not None]
    return {"name": plan.frontier.name, "currency": str(plan.frontier.currency), "points": points}


def _losses(plan: Plan) -> list[float]:
    best = plan.choice.epsilon
    step = 2 * math.log(REACH) / POINTS
    return sorted({best * math.exp(i * step) for i in range(-POINTS // 2, POINTS // 2 + 1) if i} | {best})


def _point(plan: Plan, loss: float) -> dict[str, object] | None:
    """The frontier and welfare at one loss; None where a number leaves the range of floats."""
    frontier, welfare = plan.frontier, plan.welfare
    try:
        numbers = {
            "loss": loss,
            "accuracy": frontier.accuracy(loss),
            "marginal_rate_of_transformation": frontier.marginal_rate_of_transformation(loss),
            "willingness_to_accept": welfare.willingness_to_accept(frontier, loss),
            "privacy_cost": welfare.privacy_cost(loss),
            "data_loss": welfare.data_loss(frontier, loss),
            "welfare": welfare.at(frontier, loss),
        }
    except (ZeroDivisionError, OverflowError):
        return None
    if not all(math.isfinite(number) for number in numbers.values()):
        return None
    return {**numbers, "technology": frontier.technology(loss)}


def _tables(plan: Plan) -> list[dict[str, object]]:
    rows = []
    for table in plan.tables:
        asked = next(asked for asked in plan.program.file.workload if asked.name == table.table)
        rows.append(
            {
                "name": table.table,
                "by": list(asked.by),
                "where": {name: list(levels) for name, levels in asked.where.items()},
                "unit": table.unit,
                "query_count": table.query_count,
                "measured_in": table.measured_in,
                "loss_measure": asked.loss,
                "root_mean_squared_error": table.root_mean_squared_error,
                "half_width": table.half_width,
                "root_mean_squared_consequence": table.root_mean_squared_consequence,
                "data_loss": table.data_loss,
            }
        )
    return rows


def _groups(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "name": group.name,
            "size": group.size,
            "relative_privacy_weight": group.relative_privacy_weight,
            "cost_per_member": group.cost_per_member,
            "privacy_cost": group.privacy_cost,
        }
        for group in plan.choice.groups
    ]


def _technologies(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "noise": row.noise,
            "strategy": row.strategy,
            "chosen": plan.uses(row),
            "why_not": row.why or None,
            "epsilon": None if row.choice is None else row.choice.epsilon,
            "welfare": None if row.choice is None else row.choice.welfare,
            "root_mean_squared_error": None if row.choice is None else row.choice.root_mean_squared_error,
            "root_mean_squared_consequence": None if row.choice is None else row.choice.root_mean_squared_consequence,
            "bound_by": None if row.choice is None else row.choice.bound_by,
        }
        for row in plan.comparisons
    ]


def _strategies(plan: Plan) -> list[dict[str, object]]:
    """What is measured for each group of tables, where it is neither the tables nor the cells."""
    return [
        {
            "group": group,
            "words": found.description,
            "rows": found.exact.rows,
            "weights": [str(step) for step in found.exact.steps],
            "digest": strategy_digest(found.exact),
            "error_coefficient": found.error_coefficient,
            "lower_bound": found.lower_bound,
            "bound": found.bound,
            "gap": found.gap,
        }
        for group, found in plan.technology.found.items()
    ]


def _saving(plan: Plan) -> dict[str, object]:
    saving = plan.saving
    naive, alone, limit = saving.naive, saving.naive.choice, saving.limit
    return {
        "naive": {
            "noise": naive.noise,
            "strategy": naive.strategy,
            "why_not": naive.why or None,
            "epsilon": None if alone is None else alone.epsilon,
            "welfare": None if alone is None else alone.welfare,
        },
        "dollars": saving.dollars,
        "at_choice": saving.at_choice,
        "least_valid_for": None if limit is None else limit.bound.valid_for,
        "points": [point for loss in _losses(plan) if (point := _costs(plan, loss)) is not None],
    }


def _costs(plan: Plan, loss: float) -> dict[str, object] | None:
    """What errors cost at one loss under each technology; None where a number leaves the range of floats."""
    try:
        costs = {name: None if cost is None else cost(loss) for name, cost in plan.saving.costs.items()}
    except (ZeroDivisionError, OverflowError):
        return None
    if not all(cost is None or math.isfinite(cost) for cost in costs.values()):
        return None
    return {"loss": loss, **costs}


def _regrets(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "multiple": row.multiple,
            "epsilon": row.epsilon,
            "welfare": row.welfare,
            "absolute": row.absolute,
            "relative": row.relative,
        }
        for row in plan.regrets
        if math.isfinite(row.welfare) and math.isfinite(row.relative)
    ]


def _tornado(plan: Plan) -> list[dict[str, object]]:
    return [
        {
            "input": row.name,
            "value": row.value,
            "unit": row.unit,
            "epsilon": row.epsilon,
            "low": {"value": row.low.value, "epsilon": row.low.epsilon, "refusal": row.low.refusal},
            "high": {"value": row.high.value, "epsilon": row.high.epsilon, "refusal": row.high.refusal},
        }
        for row in plan.tornado
    ]


def _version() -> str:
    from importlib.metadata import version

    return version("dualmandate")
