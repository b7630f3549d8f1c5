"""Operation ids of `/v1/operator`, which do not change."""

from collections.abc import Mapping
from typing import Final

OPERATION_IDS: Final[Mapping[str, str]] = {
    "GET /v1/operator/health": "getHealth",
    "GET /v1/operator/checks": "runChecks",
    "GET /v1/operator/queue": "getQueue",
    "GET /v1/operator/queue/recipients": "listQueuedRecipients",
    "POST /v1/operator/queue/retry": "retryQueue",
    "POST /v1/operator/queue/cancel": "cancelQueue",
    "POST /v1/operator/queue/expire": "expireQueue",
    "GET /v1/operator/queue/holds": "listHolds",
    "POST /v1/operator/queue/hold": "holdQueue",
    "POST /v1/operator/queue/release": "releaseQueue",
    "GET /v1/operator/providers": "listProviders",
    "GET /v1/operator/providers/{name}": "getProvider",
    "POST /v1/operator/providers/{name}/pause": "pauseProvider",
    "POST /v1/operator/providers/{name}/resume": "resumeProvider",
    "PUT /v1/operator/providers/{name}/limits": "setProviderLimits",
    "DELETE /v1/operator/providers/{name}/limits": "restoreProviderLimits",
    "GET /v1/operator/accounts": "listAccounts",
    "GET /v1/operator/accounts/{id}": "getAccount",
    "PATCH /v1/operator/accounts/{id}": "updateAccount",
    "POST /v1/operator/accounts/{id}/suspend": "suspendAccount",
    "POST /v1/operator/accounts/{id}/resume": "resumeAccount",
    "POST /v1/operator/accounts/{id}/credits": "addCredits",
    "POST /v1/operator/accounts/{id}/close": "closeAccount",
    "POST /v1/operator/accounts/{id}/reopen": "reopenAccount",
    "GET /v1/operator/operators": "listOperators",
    "POST /v1/operator/operators": "addOperator",
    "DELETE /v1/operator/operators/{id}": "removeOperator",
    "GET /v1/operator/audit-log": "listAuditLogEntries",
    "GET /v1/operator/jobs": "listJobs",
    "GET /v1/operator/jobs/{id}": "getJob",
    "POST /v1/operator/consistency-checks": "startConsistencyCheck",
}
