"""The system under test: two processes on one store, three credentials of two accounts, and the model beside it.

Everything that is done here is done to the service and to the model, and what the service answers and keeps is held
against the model at once. `test_state_machine.py` decides what happens, and when.
"""

import asyncio
import dataclasses
import itertools
from collections import Counter
from collections.abc import Sequence

import msgspec

from postroad import errors
from postroad.mail.accept import submit, submit_mime, transaction
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.services.accounts import account_registry as accounts
from postroad.services.accounts import credits
from postroad.services.domains import domain_registry as domains
from postroad.services.messages import lookup as messages
from postroad.services.operations import cleanup, operator_jobs
from postroad.storage.engine import group_commit
from postroad.storage.mail import messages as stored_messages
from postroad.storage.operations import consistency as stored_consistency
from postroad.storage.people import accounts as stored_accounts
from tests.contexts import Clock
from tests.reliability import crashable_stores, faults, model

FIRST_CREDITS = 15
# Two credentials of one account share its credits but not its keys.
CREDENTIALS = {"cred_one": "first", "cred_two": "first", "cred_three": "second"}
DOMAINS = {"first": ("one.example", "two.example"), "second": ("three.example",)}
PROCESSES = 2
TIMEOUT_SECONDS = 600.0
MAX_MESSAGES = 10_000

Request = tuple[int, model.Send]


class SystemUnderTest:
    """The service, the model, and how often each thing was seen."""

    def __init__(self, engine: crashable_stores.Engine, seen: Counter[str]) -> None:
        self.engine = engine
        self.seen = seen
        self.clock = Clock()
        self.processes: list[crashable_stores.Process] = []
        self.account_ids: dict[str, str] = {}
        self.domain_ids: dict[tuple[str, str], str] = {}
        self.books = model.ModelState({}, {})
        # What is left of each credential's rate if every request counts, whatever became of it.
        self._asked: dict[str, model.Bucket] = {}
        self._numbers = itertools.count()

    async def open(self) -> None:
        """An empty store, the processes, the accounts."""
        await self.engine.open()
        for _ in range(PROCESSES):
            self.processes.append(await self._start())
        for name, owned in DOMAINS.items():
            account = await accounts.create(self.processes[0].ctx, name)
            self.account_ids[name] = account.id
            self.books.accounts[account.id] = model.Account()
            for domain in owned:
                await self.add_domain(0, name, domain)
            await self.grant(0, name, FIRST_CREDITS)
        self.books.owners = {credential: self.account_ids[owner] for credential, owner in CREDENTIALS.items()}
        interval = model.SECOND // crashable_stores.RATE
        full = model.Bucket(
            interval, interval * crashable_stores.BURST, interval * crashable_stores.BURST, self.clock.now
        )
        self.books.rates = dict.fromkeys(self.account_ids.values(), full)
        self._asked = dict.fromkeys(self.account_ids.values(), full)

    async def close(self) -> None:
        for process in self.processes:
            await process.stop()
        await self.engine.close()

    async def _start(self) -> crashable_stores.Process:
        return await crashable_stores.Process.start(self.engine.url, clock=self.clock)

    # What operators do.

    async def grant(self, place: int, name: str, amount: int) -> None:
        await credits.add(self.processes[place].ctx, self.account_ids[name], amount, None)
        self.books.grant(self.account_ids[name], amount)

    async def suspend(self, place: int, name: str) -> None:
        await accounts.suspend(self.processes[place].ctx, self.account_ids[name], "for the test")
        self.books.change(self.account_ids[name], suspended=True)

    async def resume(self, place: int, name: str) -> None:
        await accounts.resume(self.processes[place].ctx, self.account_ids[name])
        self.books.change(self.account_ids[name], suspended=False)

    async def add_domain(self, place: int, name: str, domain: str) -> None:
        added = await domains.add(self.processes[place].ctx, self.account_ids[name], domain, verified=True)
        self.domain_ids[name, domain] = added.id
        owned = self.books.accounts[self.account_ids[name]].domains
        self.books.change(self.account_ids[name], domains=owned | {domain})
        self._pass_the_second_that_a_change_may_take()

    async def remove_domain(self, place: int, name: str, domain: str) -> None:
        domain_id = self.domain_ids.pop((name, domain))
        await domains.remove(self.processes[place].ctx, self.account_ids[name], domain_id)
        owned = self.books.accounts[self.account_ids[name]].domains
        self.books.change(self.account_ids[name], domains=owned - {domain})
        self._pass_the_second_that_a_change_may_take()

    def _pass_the_second_that_a_change_may_take(self) -> None:
        self.clock.pass_seconds(1)

    async def sweep(self, place: int) -> None:
        before = len(self.books.keys)
        self.books.sweep(self.clock.now)
        swept = await cleanup.sweep(self.processes[place].ctx)
        assert swept.idempotency_keys == before - len(self.books.keys)

    # What callers do.

    async def send(self, requests: Sequence[Request]) -> None:
        """Send all at once, and hold the answers against the model."""
        self._check(await self._answers(requests))

    async def give_up(self, place: int, send: model.Send, *, turns: int) -> None:
        """A caller goes away after some turns of the event loop, and repeats the same request at once."""
        request_id = self._new_id()
        first = asyncio.create_task(self._ask(place, send, request_id))
        for _ in range(turns):
            await asyncio.sleep(0)
        first.cancel()
        (answer,) = await asyncio.gather(first, return_exceptions=True)
        left = answer if isinstance(answer, str | transaction.Accepted) else None
        (gone,) = self._outcomes([(send, request_id, left)])
        outcomes = await self._answers([(place, send)])
        commits = self.processes[place].ctx.accept_commits
        assert isinstance(commits, group_commit.GroupCommit)
        if commits._runner is not None:
            await asyncio.wait([commits._runner])
        self._check(await self._resolved([gone, *outcomes]))

    async def send_in_trouble(self, requests: Sequence[Request], fault: faults.Fault) -> None:
        """The store fails under the first process. Who is told so may be stored only if it failed in the commit."""
        store = self.processes[0].store
        store.expect(fault)
        outcomes = await self._answers(requests)
        store.expect_nothing()
        await self.engine.settle()
        self._check_all_or_nothing(fault, store.written, await self._stored())
        store.has_struck = False
        resolved = await self._resolved(outcomes)
        if fault.moment is faults.Moment.BEFORE:  # a message that still finds room in the file is no trouble
            assert len(resolved) == sum(outcome.answer != model.AWAY for outcome in outcomes)
        self._check(resolved)

    async def send_and_die(self, requests: Sequence[Request], fault: faults.Fault) -> None:
        """The first process dies in its first transaction, or afterwards when it makes none."""
        store = self.processes[0].store
        store.expect(fault)
        outcomes = await self._answers(requests)
        written = store.written if store.has_struck else set()
        await self._end(fault)
        self._check_all_or_nothing(fault, written, await self._stored())
        self._check(await self._resolved(outcomes))

    async def grant_and_die(self, name: str, amount: int, fault: faults.Fault) -> None:
        """An operator's process dies: the credits are there with their entry, or neither is."""
        account_id = self.account_ids[name]
        self.processes[0].store.expect(fault)
        try:
            await credits.add(self.processes[0].ctx, account_id, amount, None)
        except Exception:
            if not self.processes[0].store.is_dead:
                raise
        await self._end(fault)
        found = await accounts.find(self.processes[0].ctx, account_id)
        is_granted = found.available != self.books.accounts[account_id].available
        assert is_granted or fault.moment is not faults.Moment.AFTER
        assert not is_granted or fault.moment is not faults.Moment.BEFORE
        if is_granted:
            self.books.grant(account_id, amount)

    async def _end(self, fault: faults.Fault) -> None:
        """End the first process, if the fault has not done it, and start another one on what it left."""
        await self.processes[0].store.die(fault)
        dead = range(PROCESSES) if self.engine.dies_as_one else range(1)
        for place in dead:
            await self.processes[place].stop()
        await self.engine.recover()
        for place in dead:
            self.processes[place] = await self._start()

    async def repeat_everything(self, place: int) -> None:
        """Every key that was used in the last day is answered as it was."""
        for used in list(self.books.keys.values()):
            if used.expires_at > self.clock.now:
                (outcome,) = await self._answers([(place, used.send)])
                assert isinstance(outcome.answer, transaction.Accepted)
                assert outcome.answer.replayed
                assert model.repeated(outcome.answer) == model.repeated(used.answer)
                self._check([outcome])

    async def _answers(self, requests: Sequence[Request]) -> list[model.Outcome]:
        ids = [self._new_id() for _ in requests]
        async with asyncio.timeout(TIMEOUT_SECONDS):
            answers = await asyncio.gather(
                *(self._ask(place, send, new) for (place, send), new in zip(requests, ids, strict=True))
            )
        self._check_in_progress(requests, answers)
        self._check_away(requests, answers)
        return self._outcomes(
            [
                (send, request_id, answer)
                for (_, send), request_id, answer in zip(requests, ids, answers, strict=True)
                if answer != model.IN_PROGRESS
            ]
        )

    def _outcomes(self, answered: Sequence[tuple[model.Send, str, model.Answer | None]]) -> list[model.Outcome]:
        """Of requests that ran at once, the rate may refuse any, if it has not enough for all of them."""
        short = set()
        for send, _, _ in answered:
            bucket = self._asked[self.books.owners[send.credential]]
            if not bucket.has_one(self.clock.now):
                short.add(send.credential)
            self._asked[self.books.owners[send.credential]] = bucket.take(self.clock.now)
        return [
            model.Outcome(send, request_id, send.credential in short, answer) for send, request_id, answer in answered
        ]

    async def _ask(self, place: int, send: model.Send, request_id: str) -> model.Answer | None:
        process = self.processes[place]
        who = callers.Caller(
            self.books.owners[send.credential], send.credential, callers.Scheme.API_KEY, callers.EVERYTHING
        )
        answer: model.Answer
        try:
            if send.is_raw:
                answer = await submit_mime.submit_mime(
                    process.ctx, who, raw_of(send, request_id), request_id=request_id
                )
            else:
                answer = await submit.submit(
                    process.ctx,
                    who,
                    request_of(send),
                    request_id=request_id,
                    source=statuses.Source.API,
                    key=send.key,
                )
        except Exception as refusal:
            if process.store.is_dead:
                return None
            if not isinstance(refusal, errors.PostroadError):
                raise
            answer = refusal.code
        if process.store.is_dead:
            return None
        self.seen[answer if isinstance(answer, str) else model.REPLAYED if answer.replayed else model.ACCEPTED] += 1
        return answer

    def _new_id(self) -> str:
        return f"req_{next(self._numbers):028x}"

    # What must be true.

    def _check(self, outcomes: Sequence[model.Outcome]) -> None:
        for outcome in outcomes:
            if model.is_new(outcome):
                check_receipt(outcome)
        explained = model.explain(self.books, outcomes, now=self.clock.now)
        assert explained is not None, (outcomes, self.books)
        self.books = explained

    def _check_in_progress(self, requests: Sequence[Request], answers: Sequence[model.Answer | None]) -> None:
        """Only for a key that another request in the same process has, and never for all of them."""
        asked = [(place, send.scope) for place, send in requests]
        others = {one for one, answer in zip(asked, answers, strict=True) if answer != model.IN_PROGRESS}
        kept_out = [one for one, answer in zip(asked, answers, strict=True) if answer == model.IN_PROGRESS]
        assert all(one in others and one[1] is not None for one in kept_out)

    def _check_away(self, requests: Sequence[Request], answers: Sequence[model.Answer | None]) -> None:
        """Only from the process that has met a fault."""
        places = {place for (place, _), answer in zip(requests, answers, strict=True) if answer == model.AWAY}
        assert places <= {0}
        assert not places or self.processes[0].store.has_struck

    def _check_all_or_nothing(self, fault: faults.Fault, written: set[str], stored: set[str]) -> None:
        found = stored & written
        assert found in (set(), written), "half of a transaction is stored"
        if fault.is_fatal and fault.moment is not faults.Moment.DURING:
            assert found == (written if fault.moment is faults.Moment.AFTER else set())
        if written:
            self.seen[
                f"{'death' if fault.is_fatal else 'trouble'} {fault.moment}, {'all' if found else 'nothing'}"
            ] += 1

    async def _stored(self) -> set[str]:
        return {message.id for name in self.account_ids for message in await self._messages(name)}

    async def _messages(self, name: str) -> list[stored_messages.Message]:
        ctx = self.processes[-1].ctx
        page = await messages.page(ctx, self.account_ids[name], messages.Filters(), limit=MAX_MESSAGES, cursor=None)
        return page.messages

    async def _resolved(self, outcomes: Sequence[model.Outcome]) -> list[model.Outcome]:
        """Who got no answer was accepted if there is a message of that request; else nothing happened."""
        stored = {message.request_id: message for name in self.account_ids for message in await self._messages(name)}
        resolved = []
        for outcome in outcomes:
            if outcome.answer not in (None, model.AWAY):
                resolved.append(outcome)
            elif outcome.request_id in stored:
                message = stored[outcome.request_id]
                async with self.processes[-1].ctx.store.reading() as tx:
                    found = await stored_messages.response(tx, message.account_id, message.id)
                assert found is not None
                accepted = transaction.Accepted(message.id, message.request_id, found[0], replayed=False)
                resolved.append(dataclasses.replace(outcome, answer=accepted))
        return resolved

    async def check_sums(self) -> None:
        """Balances and counts, which cost little to ask for."""
        async with self.processes[-1].ctx.store.reading() as tx:
            counts = await stored_consistency.counts(tx)
            for account_id, account in self.books.accounts.items():
                found = await stored_accounts.by_id(tx, account_id)
                assert found is not None
                assert (found.available, found.reserved) == (account.available, account.reserved)
                assert (found.status == stored_accounts.SUSPENDED) == account.suspended
        assert counts.messages == len(self.books.messages)
        assert counts.recipients == sum(len(send.recipients) for send in self.books.messages.values())
        assert counts.ledger_entries == sum(account.entries for account in self.books.accounts.values())
        assert counts.idempotency_keys == len(self.books.keys)

    async def check_books(self) -> None:
        """Everything: each message with its recipients is there, and no other, and the audit finds nothing."""
        await self.check_sums()
        assert (await operator_jobs.check_consistency(self.processes[-1].ctx)).findings == []
        assert await self._stored() == set(self.books.messages)
        for message_id, send in self.books.messages.items():
            account_id = self.books.owners[send.credential]
            _, reached = await messages.find(self.processes[-1].ctx, account_id, message_id)
            assert sorted(one.email.lower() for one in reached) == sorted(send.recipients)


def request_of(send: model.Send) -> send_request.SendRequest:
    return send_request.SendRequest(
        sender=f"shop@{send.domain}", to=send.to, cc=send.cc, bcc=send.bcc, subject="Hello", text="Hello " * send.words
    )


def raw_of(send: model.Send, request_id: str) -> statuses.RawMessage:
    """The same as a client renders it, each time with another Message-ID."""
    fields = [
        f"From: shop@{send.domain}",
        *(f"{name}: {', '.join(people)}" for name, people in (("To", send.to), ("Cc", send.cc)) if people),
        "Subject: Hello",
        f"Message-ID: <{request_id}@client.example.org>",
        *([] if send.key is None else [f"Idempotency-Key: {send.key}"]),
    ]
    return statuses.RawMessage(
        sender=f"shop@{send.domain}",
        recipients=(*send.to, *send.cc, *send.bcc),
        content="\r\n".join((*fields, "", *["Hello"] * send.words, "")).encode(),
        trace=f"by here with ESMTPA id {request_id}; Thu, 1 Jan 1970 00:00:00 +0000",
    )


def check_receipt(outcome: model.Outcome) -> None:
    """What the caller is told is what was asked for."""
    send, answer = outcome.send, outcome.answer
    assert isinstance(answer, transaction.Accepted)
    shown_receipt = msgspec.json.decode(answer.response, type=send_request.Receipt)
    assert (
        (shown_receipt.id, shown_receipt.request_id)
        == (answer.message_id, answer.request_id)
        == (shown_receipt.id, outcome.request_id)
    )
    if send.is_raw:
        # Whoever no field names got a blind copy.
        shown = {one.lower() for one in (*shown_receipt.to, *shown_receipt.cc)}
        assert (shown_receipt.source, shown_receipt.to, shown_receipt.cc) == (statuses.Source.SMTP, send.to, send.cc)
        assert {one.lower() for one in shown_receipt.bcc} == send.recipients - shown
    else:
        assert (shown_receipt.to, shown_receipt.cc, shown_receipt.bcc) == (send.to, send.cc, send.bcc)
    assert (shown_receipt.recipient_count, shown_receipt.credits_reserved) == (
        len(send.recipients),
        len(send.recipients),
    )
