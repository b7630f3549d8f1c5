// Waiting for a final status, on a clock that moves only when the client sleeps.

package postroad

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// becomes serves a message that is queued a number of times, and delivered then.
func becomes(queued int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := RecipientDelivered
		if queued--; queued >= 0 {
			status = RecipientDeferred
		}
		fmt.Fprintf(w, `{"id": "em_1", "status": "partial", "recipients": [{"status": "bounced"}, {"status": %q}]}`, status)
	}
}

func TestWaitPollsUntilTheStatusIsFinal(t *testing.T) {
	baseURL, requests := record(t, becomes(9))
	client := newClient(t, baseURL)
	pauses := withoutSleep(client)
	message, err := client.Wait(context.Background(), "em_1", 5*time.Minute)
	if err != nil || message.Recipients[1].Status != "delivered" || len(requests()) != 10 {
		t.Fatalf("%v, %v after %d requests", message, err, len(requests()))
	}
	want := []string{"1s", "1.5s", "2.25s", "3.375s", "5.0625s", "7.59375s", "10s", "10s", "10s"}
	if fmt.Sprint(*pauses) != fmt.Sprint(want) {
		t.Errorf("pauses: %v", *pauses)
	}
}

func TestWaitEnds(t *testing.T) {
	for timeout, want := range map[time.Duration]string{
		0:                       "[]",
		900 * time.Millisecond:  "[900ms]",
		3500 * time.Millisecond: "[1s 1.5s 1s]",
	} {
		baseURL, requests := record(t, becomes(1000))
		client := newClient(t, baseURL)
		pauses := withoutSleep(client)
		message, err := client.Wait(context.Background(), "em_1", timeout)
		if !errors.Is(err, ErrTimedOut) || !strings.Contains(err.Error(), "em_1") || message == nil || message.IsFinal() {
			t.Errorf("%v: %v, %v", timeout, message, err)
		}
		if fmt.Sprint(*pauses) != want || len(requests()) != len(*pauses)+1 {
			t.Errorf("%v: pauses %v, %d requests", timeout, *pauses, len(requests()))
		}
	}
}

func TestWhatIsFinal(t *testing.T) {
	for want, all := range map[bool][][]string{
		true:  {{"delivered"}, {"bounced", "failed", "delivered"}, {"canceled", "expired"}},
		false: {{}, {"queued"}, {"delivered", "deferred"}, {"delivered", "snoozed"}, {""}},
	} {
		for _, statuses := range all {
			message := Message{Status: MessageDelivered}
			for _, status := range statuses {
				message.Recipients = append(message.Recipients, Recipient{Status: status})
			}
			if message.IsFinal() != want {
				t.Errorf("%v", statuses)
			}
		}
	}
}

func TestWaitGivesTheErrorOfGet(t *testing.T) {
	baseURL, requests := record(t, answerWith(404, `{"code": "not_found"}`))
	if message, err := newClient(t, baseURL).Wait(context.Background(), "em_1", time.Minute); !errors.Is(err, ErrNotFound) || message != nil || len(requests()) != 1 {
		t.Errorf("%v after %d requests", err, len(requests()))
	}
	if _, err := newClient(t, baseURL).Wait(context.Background(), "../v1", time.Minute); err == nil || len(requests()) != 1 {
		t.Error("a bad id was not refused")
	}
	if _, err := newClient(t, baseURL).Wait(context.Background(), "em_1", -1); err == nil || len(requests()) != 1 {
		t.Error("less than no time was not refused")
	}
}

func TestWaitIsCancelled(t *testing.T) {
	baseURL, _ := record(t, becomes(1000))
	client := newClient(t, baseURL)
	ctx, cancel := context.WithCancel(context.Background())
	client.clock.sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return sleep(ctx, time.Hour) }
	if message, err := client.Wait(ctx, "em_1", time.Minute); !errors.Is(err, context.Canceled) || message == nil {
		t.Errorf("%v, %v", message, err)
	}
}
