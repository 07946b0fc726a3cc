"""JSON Schemas of what people write and of what the commands print, for editors and for other programs.

All of them come from the models that read or write, so that the two cannot differ.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from dualmandate.audit.targets.tables_folder import TablesFile
from dualmandate.errors import UnknownName, did_you_mean
from dualmandate.inquiry.schema import QueryKeys
from dualmandate.program.schema import ProgramKeys
from dualmandate.report.documents import commands, inquiry, ledger, service, survey
from dualmandate.report.documents.document import DocumentModel
from dualmandate.report.documents.plan import PlanDocument
from dualmandate.survey.schema import SurveyFile

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
FILES: dict[str, tuple[type[BaseModel], str]] = {  # null is not written, and is left out of their schemas
    "program": (ProgramKeys, "A program file of Dualmandate, read as TOML"),
    "survey": (SurveyFile, "A survey file of Dualmandate, read as TOML"),
    "tables": (TablesFile, "What published tables a folder holds, read as TOML"),
    "query": (QueryKeys, "A question to the records of a program, read as JSON"),
}
DOCUMENTS: dict[str, type[DocumentModel]] = {
    "plan": PlanDocument,
    "refusal": commands.RefusalDocument,
    "replicate": commands.ReplicateDocument,
    "approval": ledger.ApprovalDocument,
    "ledger": ledger.LedgerDocument,
    "ledger-account": ledger.LedgerAccountDocument,
    "ledger-accounts": ledger.LedgerAccountsDocument,
    "ledger-anchor": ledger.LedgerAnchorDocument,
    "ledger-anchoring": ledger.LedgerAnchoringDocument,
    "ledger-cancellation": ledger.LedgerCancellationDocument,
    "ledger-events": ledger.LedgerEventsDocument,
    "ledger-export": ledger.LedgerExportDocument,
    "ledger-report": ledger.LedgerReportDocument,
    "ledger-verification": ledger.LedgerVerificationDocument,
    "release": ledger.ReleaseDocument,
    "publication": ledger.PublicationDocument,
    "check": ledger.CheckDocument,
    "price": inquiry.PriceDocument,
    "answer": inquiry.AnswerDocument,
    "api-key": service.ApiKeyDocument,
    "api-keys": service.ApiKeysDocument,
    "budget": service.BudgetDocument,
    "budget-request": service.BudgetRequestDocument,
    "budget-requests": service.BudgetRequestsDocument,
    "forecast": service.ForecastDocument,
    "health": service.HealthDocument,
    "history": service.HistoryDocument,
    "identity": service.IdentityDocument,
    "program-declared": service.DeclaredProgramDocument,
    "programs": service.ProgramsDocument,
    "project": service.ProjectDocument,
    "question-approval": service.QuestionApprovalDocument,
    "serving": service.ServingDocument,
    "preferences": survey.PreferencesDocument,
    "questionnaire": survey.QuestionnaireDocument,
    "audit": commands.AuditDocument,
    "benchmark": commands.BenchmarkDocument,
    "doctor": commands.DoctorDocument,
    "init": commands.InitDocument,
    "draft": commands.DraftDocument,
    "index": commands.IndexDocument,
    "demo": commands.DemoDocument,
    "schemas": commands.SchemasDocument,
}


def names() -> tuple[str, ...]:
    """What has a schema: the files that people write, and the documents that leave."""
    return (*FILES, *DOCUMENTS)


def schema(name: str) -> Schema:
    """The JSON Schema of a file or a document, by name: `program`, `plan`, `refusal`, `ledger`, …"""
    if name in DOCUMENTS:
        written = _plain(DOCUMENTS[name].model_json_schema())
        return {"$schema": DIALECT, "title": written.pop("description").removesuffix("."), **written}
    if name in FILES:
        model, title = FILES[name]
        return {"$schema": DIALECT, **_plain(model.model_json_schema(), null=False), "title": title}
    raise UnknownName(
        f"there is no schema called '{name}'",
        why=f"the schemas are {', '.join(names())}",
        instead=did_you_mean(name, names(), "name one of them"),
    )


def _plain(node: Any, *, null: bool = True) -> Any:
    """A schema without made-up titles and without empty defaults."""
    if isinstance(node, list):
        return [_plain(item, null=null) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _plain(value, null=null)
        for key, value in node.items()
        if not (key == "title" and isinstance(value, str)) and not (key == "default" and value in (None, {}, []))
    }
    options = [option for option in kept.get("anyOf", []) if null or option != {"type": "null"}]
    if len(options) == 1:
        kept.pop("anyOf")
        kept = {**options[0], **kept}
    elif options:
        kept["anyOf"] = options
    return kept
