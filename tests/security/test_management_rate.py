"""A flood of management requests, over HTTP: refused with a time to wait, while mail is accepted as before."""

from pathlib import Path

from tests.conformance import live_service

SLOW = "[limits]\napi_rate = 3\n"


def test_a_user_who_floods_the_management_is_refused_and_sending_is_not(tmp_path: Path) -> None:
    with live_service.running(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db", settings=SLOW) as service:
        answers = [service.client.get("/v1/account", headers={"Authorization": service.mine.owner}) for _ in range(20)]
        refused = [answer for answer in answers if answer.status_code != 200]
        assert refused
        for answer in refused:
            live_service.check_refusal(answer, 429, "rate_limited")
            assert int(answer.headers["retry-after"]) >= 1
        assert service.post(live_service.message()).status_code == 202
        theirs = service.client.get("/v1/account", headers={"Authorization": service.theirs.owner})
        assert theirs.status_code == 200
