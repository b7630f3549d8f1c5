// Which calls are tried again, and when.

package postroad

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// call is a request in the form in which every attempt sends it.
type call struct {
	method, path string
	key          string // Empty when the call has none.
	body         []byte
	isHarmless   bool // A POST that may be made twice, even without a key.
}

// isRepeatable tells whether a second request does no harm when nobody knows what became of the first.
func (c call) isRepeatable() bool {
	return c.method != http.MethodPost || c.key != "" || c.isHarmless
}

// clock is what retries need of the world; tests have one of their own.
type clock struct {
	now    func() time.Time
	sleep  func(context.Context, time.Duration) error
	random func() float64 // From 0 up to 1.
}

var systemClock = clock{now: time.Now, sleep: sleep, random: randomFraction}

// do makes attempts until one succeeds, one fails for good, or the time is used up.
func (c *Client) do(ctx context.Context, request call, into result) error {
	end := c.clock.now().Add(c.maxElapsed)
	for attempt := 1; ; attempt++ {
		limit := c.timeout
		if left := end.Sub(c.clock.now()); c.maxElapsed > 0 && left < limit {
			limit = left
		}
		failure := c.attempt(ctx, limit, request, into)
		if failure == nil {
			return nil
		}
		failure.attempts, failure.IdempotencyKey = attempt, request.key
		if failure.Status == 0 && ctx.Err() != nil {
			return interrupted(ctx, failure, "during the request")
		}
		if !failure.IsRetryable() || !request.isRepeatable() && !failure.isUndone() {
			return failure
		}
		wait := failure.RetryAfter + backoff(attempt, c.clock.random())
		resume := c.clock.now().Add(wait)
		if callers, ok := ctx.Deadline(); resume.After(end) || ok && resume.After(callers) {
			return failure
		}
		if c.clock.sleep(ctx, wait) != nil {
			return interrupted(ctx, failure, "while waiting to try again after "+failure.Code)
		}
	}
}

// isUndone tells of a response that says that nothing was done.
func (e *Error) isUndone() bool {
	return e.Status == http.StatusTooManyRequests || e.Code == CodeServiceUnavailable
}

// interrupted is the error of a call whose caller did not want to wait any longer.
func interrupted(ctx context.Context, last *Error, when string) *Error {
	code := CodeConnectionFailed
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		code = CodeTimedOut
	}
	return &Error{
		Code:           code,
		Message:        ctx.Err().Error() + " " + when,
		IdempotencyKey: last.IdempotencyKey,
		attempts:       last.attempts,
		cause:          ctx.Err(),
	}
}

// backoff is between half and all of 0.5 s, 1 s, 2 s, 4 s, and then always 8 s.
func backoff(retry int, random float64) time.Duration {
	longest := 8 * time.Second
	if retry < 5 {
		longest = 500 * time.Millisecond << (retry - 1)
	}
	return time.Duration(float64(longest) * (1 + random) / 2)
}

// longestRetryAfter leaves room to add to it: a time.Duration ends at 292 years.
const longestRetryAfter = 1 << 62 * time.Nanosecond

// parseRetryAfter reads seconds or an HTTP date; what is neither counts as nothing, and so does the past.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(longestRetryAfter/time.Second) {
			return longestRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil || date.Before(now) {
		return 0
	}
	if wait := date.Sub(now); wait < longestRetryAfter {
		return wait
	}
	return longestRetryAfter
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
