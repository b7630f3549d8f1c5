"""Senders record every answer, and report a different answer to the same key."""

import random

from tests.chaos import load, sample_snapshot


def senders() -> load.Load:
    return load.Load([], [sample_snapshot.customer()], random.Random(1), 0.0)


def test_a_first_answer_is_kept_and_the_same_again_is_fine() -> None:
    sent = senders()
    submission = sent.submission(load.HTTP)
    assert not submission.is_acknowledged
    for _ in range(2):
        sent.note(submission, "em_1", b"{}")
    assert (submission.message_id, sent.problems, sent.acknowledged, sent.answers) == ("em_1", [], 1, 2)


def test_another_id_or_other_bytes_for_the_same_key_are_noticed() -> None:
    sent = senders()
    submission = sent.submission(load.HTTP)
    sent.note(submission, "em_1", b"{}")
    sent.note(submission, "em_2", b"{}")
    sent.note(submission, "em_1", b"{ }")
    assert len(sent.problems) == 2


async def test_a_submission_that_is_refused_permanently_is_noticed() -> None:
    async def refuse(_: load.Submission) -> float | None:
        raise load.SubmissionRefused("550 5.7.1 forbidden")

    sent = senders()
    await sent.send_until_answered(sent.submission(load.SMTP), refuse)
    assert sent.problems == ["smtp-0: 550 5.7.1 forbidden"]
