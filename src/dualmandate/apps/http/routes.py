"""Every request that the service answers, with the roles that may make it.

A request is one act of the rooms below: nothing is computed here. What depends on records leaves as an answer with
noise, and as nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, Response

from dualmandate.apps.ask import AnswerNotice, PriceNotice
from dualmandate.apps.http.bodies import (
    ApiKeyBody,
    AskBody,
    BudgetDecisionBody,
    BudgetRequestBody,
    QuestionApprovalBody,
    QuestionBody,
    Sent,
)
from dualmandate.apps.http.calls import (
    Administers,
    Anyone,
    Asks,
    Call,
    Decides,
    Follows,
    Oversees,
    Prices,
    Reads,
    Watches,
    replied,
    rows_replied,
    sent,
)
from dualmandate.apps.http.files import project_document, served_file
from dualmandate.apps.http.keys import AccessRole, ApiKey
from dualmandate.apps.http.replies import KeptReply
from dualmandate.apps.http.service import ServedProgram, told_outside
from dualmandate.apps.http.watching import MEDIA_TYPE
from dualmandate.apps.ledgers import number as exact
from dualmandate.apps.statements import accounts_document, balances, events, events_document
from dualmandate.errors import InvalidRequest, NotAllowed
from dualmandate.ledger import BudgetDecision, BudgetRequest, Scope
from dualmandate.report.documents.inquiry import AnswerDocument, PriceDocument
from dualmandate.report.documents.ledger import LedgerAccountsDocument, LedgerEventsDocument
from dualmandate.report.documents.service import (
    ApiKeyDocument,
    ApiKeyPart,
    ApiKeysDocument,
    BudgetDocument,
    BudgetRequestDocument,
    BudgetRequestPart,
    BudgetRequestsDocument,
    DeclaredProgramDocument,
    ForecastDocument,
    HistoryDocument,
    IdentityDocument,
    ProgramsDocument,
    ProjectDocument,
    QuestionApprovalDocument,
    RefusedProgramPart,
    ServedProgramPart,
    attribute_part,
)

if TYPE_CHECKING:
    from dualmandate.inquiry import Answer, Asker, Question
    from dualmandate.population import PrivacyLoss

routes = APIRouter(prefix="/v1")
IdempotencyKey = Annotated[
    str | None, Header(description="A word of your own for this request: sent again, it gets the same reply.")
]
MaybeName = Annotated[Sent | None, Query()]
Release = Annotated[str, Query()]


@routes.get("/me", response_model=IdentityDocument, summary="Whose key this is")
def me(call: Anyone) -> Response:
    """The name, role, group and purposes of the key that was sent."""
    return sent(replied(IdentityDocument.made_of(call.caller)))


@routes.get("/programs", response_model=ProgramsDocument, summary="The programs of the project")
def programs(call: Anyone) -> Response:
    """What may be asked about, and program files that cannot be used, with why."""
    found = [_program_part(each) for each in call.service.programs.values()]
    refused = [
        RefusedProgramPart.made_of(file=file, refusal=told_outside(each, call.service.folder))
        for file, each in call.service.refused.items()
    ]
    return sent(replied(ProgramsDocument.made_of(programs=found, refused=refused)))


def _stated(served: ServedProgram) -> dict[str, Any]:
    program = served.program
    return {
        "name": program.name,
        "account": program.account,
        "unit": program.protection.unit,
        "neighbors": str(program.protection.neighbors),
        "asked": served.why_not is None,
        "why_not": served.why_not,
    }


def _program_part(served: ServedProgram) -> ServedProgramPart:
    return ServedProgramPart.made_of(served, **_stated(served))


@routes.get("/programs/{program}", response_model=DeclaredProgramDocument, summary="What a program declares")
def program(call: Anyone, program: str) -> Response:
    """Attributes with their levels and groupings: what a question can be about. All of it is public."""
    served = call.service.program(program)
    domain = served.program.domain
    parts = [
        attribute_part(
            each,
            tuple(g.name for h in domain.hierarchies if h.attribute == each.name for g in h.groupings),
        )
        for each in domain.attributes
    ]
    size = float(served.program.file.population.population_size.value)
    document = DeclaredProgramDocument.made_of(served, **_stated(served), population_size=size, attributes=parts)
    return sent(replied(document))


@routes.post("/programs/{program}/prices", response_model=PriceDocument, summary="What a question costs; free")
async def price(call: Prices, program: str, body: QuestionBody) -> Response:
    """What it costs at an accuracy, or how accurate it is at a cost, before it is asked. Opens nothing."""
    return sent(await call.worker.patiently(lambda: _price(call, program, body)))


def _price(call: Call, program: str, body: QuestionBody) -> KeptReply:
    served = call.service.program(program)
    question, loss = _question(served, body)
    inquirer, terms = served.inquirer, body.terms
    expected = terms.expected(served.program, question)
    made = inquirer.price(question.query, loss, probability=terms.nominal, records=expected)
    account = served.program.account
    known = served.why_not is None
    asker = call.service.asker(call.caller, None, served)
    left = call.service.ledger.remaining(account, asker.parts) if known else None
    document = PriceNotice(question, made, account, left).document()
    return replied(PriceDocument.model_validate(document))


def _question(served: ServedProgram, body: QuestionBody) -> tuple[Question, PrivacyLoss]:
    question = served.inquirer.question(body.query)
    return question, body.terms.loss(served.inquirer, served.program, question)


@routes.post("/programs/{program}/answers", response_model=AnswerDocument, summary="Ask a question")
async def ask(call: Asks, program: str, body: AskBody, idempotency_key: IdempotencyKey = None) -> Response:
    """Spend the loss, and answer with noise; free where the same was answered before at this loss or a larger one.

    With `Accept: text/csv` its rows, for R and spreadsheets.
    """
    served = call.service.program(program)
    asker = call.service.asker(call.caller, body.purpose, served)
    asked = f"{program}\n{call.is_csv}\n{body.model_dump_json()}".encode()

    def once(reply: Callable[[], KeptReply]) -> KeptReply:
        if idempotency_key is None:
            return reply()
        return call.worker.replies.once(call.caller.identifier, idempotency_key, asked, reply)

    kept = await call.worker.patiently(lambda: _recalled(call, served, body, asker))
    if kept is not None:
        return sent(await call.worker.patiently(lambda: once(lambda: kept)))
    return sent(await call.worker.patiently(lambda: once(lambda: _answered(call, served, body, asker)), asking=True))


def _recalled(call: Call, served: ServedProgram, body: AskBody, asker: Asker) -> KeptReply | None:
    """The answer that is there already, for which nobody waits in a line."""
    served.check_source()
    question, loss = _question(served, body)
    answer = served.inquirer.recall(question.query, loss, asker=asker, probability=body.terms.nominal)
    return None if answer is None else _told(call, served, answer)


def _answered(call: Call, served: ServedProgram, body: AskBody, asker: Asker) -> KeptReply:
    question, loss = _question(served, body)
    answer = served.inquirer.ask(question.query, loss, asker=asker, probability=body.terms.nominal)
    return _told(call, served, answer)


def _told(call: Call, served: ServedProgram, answer: Answer) -> KeptReply:
    call.worker.metrics.answers.labels("kept" if answer.spent is None else "new").inc()
    if call.is_csv:
        columns = (*answer.columns, "value", "standard_error", "lower", "upper")
        return rows_replied(
            columns,
            (
                (*row.labels, *(_finite(each) for each in (row.value, row.standard_error, row.lower, row.upper)))
                for row in answer.rows
            ),
        )
    notice = AnswerNotice(answer, served.inquirer.privacy_measure)
    return replied(AnswerDocument.model_validate(notice.document()))


def _finite(cell: float | str | None) -> float | str | None:
    return ("Inf" if cell > 0 else "-Inf") if isinstance(cell, float) and math.isinf(cell) else cell


@routes.get("/programs/{program}/answers/{release}", response_model=AnswerDocument, summary="An answer again; free")
def answer_again(
    call: Reads, program: str, release: str, probability: Annotated[str, Query(max_length=50)] = "0.95"
) -> Response:
    """An answer that somebody was given, by its name in the history: public as all that has its noise, and free."""
    served = call.service.program(program)
    asker = call.service.asker(call.caller, None, served)
    nominal = exact(probability, "a probability")
    return sent(_told(call, served, served.inquirer.reread(release, asker=asker, probability=nominal)))


@routes.post(
    "/programs/{program}/approvals", response_model=QuestionApprovalDocument, summary="Approve that a question is asked"
)
async def approve(call: Decides, program: str, body: QuestionApprovalBody) -> Response:
    """One person's word, in the ledger, that a question may be asked at exactly a loss."""

    def approved() -> KeptReply:
        served = call.service.program(program)
        served.check_source()
        question, loss = _question(served, body)
        return replied(
            QuestionApprovalDocument.made_of(served.inquirer.approve(question.query, loss, by=call.caller.name)), 201
        )

    return sent(await call.worker.patiently(approved))


@routes.get("/history", response_model=HistoryDocument, summary="Who spent what when on what")
def history(call: Reads, account: MaybeName = None, user: MaybeName = None) -> Response:
    """Losses that were set aside, the newest first: an analyst's own, or everybody's for curators and auditors."""
    found = call.service.history(call.caller, account=account, user=user)
    if call.is_csv:
        columns = ("release", "account", "user", "group", "purpose", "cost", "state", "reserved_at", "program")
        return sent(
            rows_replied(
                columns,
                ([each.cost.exact if key == "cost" else getattr(each, key) for key in columns] for each in found),
            )
        )
    return sent(replied(HistoryDocument.made_of(asked=found)))


@routes.get("/budget/{account}", response_model=BudgetDocument, summary="What may still be spent")
def budget(
    call: Reads, account: str, user: MaybeName = None, group: MaybeName = None, purpose: MaybeName = None
) -> Response:
    """What is left for the caller under every cap that applies; for anybody else, where curators and auditors ask."""
    caller = call.caller
    if caller.role is AccessRole.ANALYST:
        if (
            user not in (None, caller.name)
            or group not in (None, caller.group)
            or purpose not in (None, *caller.purposes)
        ):
            raise NotAllowed(
                "what somebody else may spend",
                why="an analyst sees what is left for the holder of the key",
                instead="leave user and group out, and name a purpose of the key or none",
            )
        user, group = caller.name, caller.group
    return sent(replied(call.service.budget(account, user=user or caller.name, group=group, purpose=purpose)))


@routes.get("/accounts", response_model=LedgerAccountsDocument, summary="Every account with its balance")
def accounts(call: Oversees) -> Response:
    """Caps, what is spent and what is left."""
    return sent(replied(LedgerAccountsDocument.model_validate(accounts_document(balances(call.service.ledger)))))


@routes.get("/accounts/{account}/forecast", response_model=ForecastDocument, summary="When a budget ends")
def account_forecast(call: Oversees, account: str, days: Annotated[int, Query(ge=1, le=3650)] = 30) -> Response:
    """At the pace of the last days."""
    return sent(replied(call.service.forecast(account, days)))


@routes.get("/ledger/events", response_model=LedgerEventsDocument, summary="The entries of the ledger")
def ledger_events(
    call: Oversees,
    account: MaybeName = None,
    after: Annotated[int, Query(ge=0)] = 0,
    most: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """Each checked anew against the chain, in order, from the one after a number on."""
    found = [each for each in events(call.service.ledger, account) if each.sequence > after][:most]
    return sent(replied(LedgerEventsDocument.model_validate(events_document(found))))


@routes.get("/requests", response_model=BudgetRequestsDocument, summary="Requests for more")
def budget_requests(call: Reads, account: MaybeName = None) -> Response:
    """An analyst's own, or everybody's for curators and auditors."""
    found = call.service.ledger.budget_requests(account)
    if call.caller.role is AccessRole.ANALYST:
        found = tuple(each for each in found if each.by == call.caller.name)
    return sent(replied(BudgetRequestsDocument.made_of(requests=[BudgetRequestPart.made_of(each) for each in found])))


@routes.post("/requests", response_model=BudgetRequestDocument, status_code=201, summary="Ask for more")
def request_more(call: Asks, body: BudgetRequestBody, idempotency_key: IdempotencyKey = None) -> Response:
    """Ask that a limit be raised: one's own, or that of one's group or a purpose of the key."""
    caller, scope = call.caller, Scope(body.scope)
    own = {Scope.USER: (caller.name,), Scope.GROUP: (caller.group,), Scope.PURPOSE: caller.purposes}[scope]
    name = caller.name if body.name is None and scope is Scope.USER else body.name
    if name is None or name not in own:
        raise NotAllowed(
            f"more for another {scope}",
            why="people ask for themselves, their group and their purposes",
            instead=f"name one of {', '.join(filter(None, own))}" if any(own) else f"this key has no {scope}",
        )
    amount = exact(body.amount, "an amount")
    wanted = BudgetRequest(body.account, scope, name, amount, reason=body.reason, by=caller.name)

    def requested() -> KeptReply:
        return replied(BudgetRequestDocument.made_of(call.service.ledger.request_more(wanted)), 201)

    if idempotency_key is None:
        return sent(requested())
    return sent(
        call.worker.replies.once(caller.identifier, idempotency_key, body.model_dump_json().encode(), requested)
    )


@routes.post("/requests/{number}/decision", response_model=BudgetRequestDocument, summary="Decide on a request")
def decide(call: Decides, number: int, body: BudgetDecisionBody) -> Response:
    """Grant it, or a part of it, or refuse it: once, by another person than who asked, recorded in the ledger."""
    granted = None if body.grant is None else exact(body.grant, "an amount")
    decision = BudgetDecision(number, granted, body.reason, by=call.caller.name)
    return sent(replied(BudgetRequestDocument.made_of(call.service.ledger.decide(decision))))


@routes.get("/project", response_model=ProjectDocument, summary="Plans, releases and public audits")
def project(call: Anyone) -> Response:
    """What is planned, approved, published and audited; public information only."""
    return sent(replied(project_document(call.service)))


@routes.get("/files/{path:path}", response_class=Response, summary="A public file of a plan, a release or an audit")
def project_file(call: Follows, path: str) -> Response:
    """As it was written; nothing that is not public, and nothing outside of these folders."""
    return served_file(call.service, path)


@routes.get("/keys", response_model=ApiKeysDocument, summary="Every key")
def keys(call: Administers) -> Response:
    """Without their secrets, which nobody has but their holders."""
    return sent(replied(ApiKeysDocument.made_of(keys=[ApiKeyPart.made_of(each) for each in call.service.keys.all()])))


@routes.post("/keys", response_model=ApiKeyDocument, status_code=201, summary="Make a key")
def make_key(call: Administers, body: ApiKeyBody) -> Response:
    """Its secret is in this reply, and never shown again."""
    made: ApiKey
    made, secret = call.service.keys.make(
        body.name, body.role, by=call.caller.name, group=body.group, purposes=body.purposes
    )
    return sent(replied(ApiKeyDocument.made_of(made, secret=secret), 201))


@routes.delete("/keys/{identifier}", response_model=ApiKeyDocument, summary="Revoke a key")
def revoke_key(call: Administers, identifier: str) -> Response:
    """It opens nothing from now on."""
    if identifier == call.caller.identifier:
        raise InvalidRequest(
            "a key that revokes itself",
            why="nobody might be left who can make keys",
            instead="revoke it with another key, or with `dualmandate keys revoke`",
        )
    return sent(replied(ApiKeyDocument.made_of(call.service.keys.revoke(identifier))))


@routes.get("/metrics", response_class=Response, summary="Numbers for Prometheus")
def metrics(call: Watches) -> Response:
    """Requests and their times, answers, and what accounts have spent."""
    return Response(call.worker.metrics.text(call.service.ledger), media_type=MEDIA_TYPE)
