// What is tried again, when, and for how long; on a clock that moves only when the client sleeps.

package postroad

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// withoutSleep gives the client a clock for tests, and keeps the pauses that it would have made.
func withoutSleep(client *Client) *[]time.Duration {
	now, pauses := time.Now(), []time.Duration{}
	client.clock = clock{
		now:    func() time.Time { return now },
		random: func() float64 { return 0 },
		sleep: func(ctx context.Context, pause time.Duration) error {
			now = now.Add(pause)
			pauses = append(pauses, pause)
			return ctx.Err()
		},
	}
	return &pauses
}

// refuse answers a number of requests with a refusal, and then with a receipt.
func refuse(times, status int, retryAfter, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if times--; times < 0 {
			w.WriteHeader(http.StatusAccepted)
			io.WriteString(w, receiptJSON)
			return
		}
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestRetriesKeepTheKeyAndTheBody(t *testing.T) {
	baseURL, requests := record(t, refuse(4, 503, "", `{"code": "service_unavailable"}`))
	client := newClient(t, baseURL)
	pauses := withoutSleep(client)
	if _, err := client.Send(context.Background(), hello); err != nil {
		t.Fatal(err)
	}
	all := requests()
	if len(all) != 5 {
		t.Fatalf("%d requests", len(all))
	}
	for _, request := range all {
		if request.body != all[0].body || request.header.Get("Idempotency-Key") != all[0].header.Get("Idempotency-Key") {
			t.Errorf("the requests differ: %v", request)
		}
	}
	for i, want := range []time.Duration{250, 500, 1000, 2000} {
		if (*pauses)[i] != want*time.Millisecond {
			t.Errorf("pause %d was %v", i+1, (*pauses)[i])
		}
	}
}

func TestWhatIsTriedAgain(t *testing.T) {
	for name, try := range map[string]struct {
		status int
		body   string
		retry  bool
	}{
		"rate":             {429, `{"code": "rate_limited"}`, true},
		"in progress":      {409, `{"code": "idempotency_in_progress"}`, true},
		"a proxy's 503":    {503, `<html>`, true},
		"a proxy's 502":    {502, `<html>`, true},
		"a proxy's 504":    {504, `<html>`, true},
		"a proxy's 500":    {500, `<html>`, true},
		"a proxy's 408":    {408, `<html>`, true},
		"a proxy's 404":    {404, `<html>`, false},
		"a proxy's 501":    {501, `<html>`, false},
		"another conflict": {409, `{"code": "idempotency_conflict"}`, false},
		"an error":         {500, `{"code": "internal_error"}`, true},
		"a bad request":    {400, `{"code": "invalid_request"}`, false},
		"a 2xx of others":  {200, `[]`, false},
	} {
		baseURL, requests := record(t, refuse(1, try.status, "2", try.body))
		client := newClient(t, baseURL)
		pauses := withoutSleep(client)
		_, err := client.Send(context.Background(), hello)
		if (err == nil) != try.retry || (len(requests()) == 2) != try.retry {
			t.Errorf("%s: %d requests, %v", name, len(requests()), err)
		}
		if try.retry && (*pauses)[0] != 2250*time.Millisecond {
			t.Errorf("%s: paused for %v", name, *pauses)
		}
	}
}

func TestRetriesAreBounded(t *testing.T) {
	for name, try := range map[string]struct {
		retryAfter string
		options    []Option
		requests   int
	}{
		"to a second":           {"", []Option{WithMaxElapsed(time.Second)}, 3}, // Pauses of 0.25 and 0.5 s; 1 s more is too much.
		"to none":               {"", []Option{WithMaxElapsed(0)}, 1},
		"in time":               {"20", nil, 3},
		"by a Retry-After":      {"86400", nil, 1},
		"by a huge Retry-After": {strings.Repeat("9", 400), nil, 1},
	} {
		baseURL, requests := record(t, refuse(1000, 429, try.retryAfter, `{"error": "slow down", "code": "rate_limited", "request_id": "req_1"}`))
		client := newClient(t, baseURL, try.options...)
		withoutSleep(client)
		_, err := client.Send(context.Background(), hello, WithIdempotencyKey("order-1"))
		var failure *Error
		if !errors.As(err, &failure) || failure.Code != "rate_limited" || failure.IdempotencyKey != "order-1" || !failure.IsRetryable() {
			t.Errorf("%s: %v", name, err)
		}
		if len(requests()) != try.requests {
			t.Errorf("%s: %d requests", name, len(requests()))
		}
	}
}

func TestErrorTellsTheAttempts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() // Now nobody listens there.
	client := newClient(t, "http://"+address)
	withoutSleep(client)
	_, err = client.Get(context.Background(), "em_1")
	want := "postroad: connection_failed: could not connect to " + address + ": connect: connection refused (19 attempts)"
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

func TestTheCallersContextEndsACall(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var failure *Error

	baseURL, requests := record(t, func(http.ResponseWriter, *http.Request) { cancel(); panic(http.ErrAbortHandler) })
	_, err := newClient(t, baseURL).Send(ctx, hello, WithIdempotencyKey("order-1"))
	if !errors.Is(err, context.Canceled) || !errors.As(err, &failure) || failure.IdempotencyKey != "order-1" || len(requests()) != 1 {
		t.Errorf("during a request: %v after %d requests", err, len(requests()))
	}

	baseURL, requests = record(t, answerWith(503, ""))
	if _, err := newClient(t, baseURL).Get(ctx, "em_1"); !errors.Is(err, context.Canceled) || len(requests()) != 0 {
		t.Errorf("before a request: %v after %d requests", err, len(requests()))
	}

	ctx, cancel = context.WithCancel(context.Background())
	client := newClient(t, baseURL)
	client.clock.sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return sleep(ctx, time.Hour) }
	if _, err := client.Get(ctx, "em_1"); !errors.Is(err, context.Canceled) || len(requests()) != 1 {
		t.Errorf("during a pause: %v after %d requests", err, len(requests()))
	}

	baseURL, requests = record(t, refuse(1, 503, "3600", ""))
	ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err = newClient(t, baseURL, WithMaxElapsed(2*time.Hour)).Get(ctx, "em_1")
	if !errors.As(err, &failure) || failure.Status != 503 || failure.RetryAfter != time.Hour || len(requests()) != 1 {
		t.Errorf("a pause beyond the deadline: %v after %d requests", err, len(requests()))
	}
}

func TestBackoff(t *testing.T) {
	for retry, longest := range map[int]time.Duration{1: 500, 2: 1000, 3: 2000, 4: 4000, 5: 8000, 6: 8000, 1000: 8000} {
		longest *= time.Millisecond
		if low, high := backoff(retry, 0), backoff(retry, 1); low != longest/2 || high != longest {
			t.Errorf("retry %d: between %v and %v", retry, low, high)
		}
	}
	first, second := randomFraction(), randomFraction()
	if first == second || first < 0 || first >= 1 || second < 0 || second >= 1 {
		t.Errorf("not random: %v %v", first, second)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                                 0,
		"0":                                0,
		"120":                              2 * time.Minute,
		"-5":                               0,
		"+5":                               0,
		"1.5":                              0,
		"1e3":                              0,
		"soon":                             0,
		"٣":                                0,
		"99999999999":                      longestRetryAfter,
		"99999999999999999999":             longestRetryAfter,
		"Sat, 31 Jan 2026 12:01:00 GMT":    time.Minute,
		"Saturday, 31-Jan-26 12:01:00 GMT": time.Minute,
		"Sat, 31 Jan 2026 11:59:00 GMT":    0,
		"Fri, 31 Dec 9999 23:59:59 GMT":    longestRetryAfter,
	} {
		if got := parseRetryAfter(value, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}
