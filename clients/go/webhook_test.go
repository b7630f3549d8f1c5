// Verify and ParseEvent, against the vectors that all clients share.

package postroad_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	postroad "github.com/postroad/postroad/clients/go"
)

func TestVerifyVectors(t *testing.T) {
	text, err := os.ReadFile("../conformance/webhook-signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []struct {
			Name      string
			Secret    string
			Body      []byte `json:"body_base64"`
			Header    string
			Now       int64
			Tolerance int64
			Valid     bool
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) == 0 {
		t.Fatal("there are no vectors")
	}
	for _, v := range file.Vectors {
		t.Run(v.Name, func(t *testing.T) {
			tolerance := time.Duration(v.Tolerance) * time.Second
			if got := postroad.VerifyAt(v.Body, v.Header, v.Secret, tolerance, time.Unix(v.Now, 0)); got != v.Valid {
				t.Errorf("got %v, want %v", got, v.Valid)
			}
			_, err := postroad.ParseEventAt(v.Body, v.Header, []string{v.Secret}, tolerance, time.Unix(v.Now, 0))
			if errors.Is(err, postroad.ErrSignature) == v.Valid {
				t.Errorf("ParseEvent: %v", err)
			}
		})
	}
}

func TestVerifyLooksAtTheClock(t *testing.T) {
	for age, want := range map[time.Duration]bool{0: true, time.Minute: true, time.Hour: false, -time.Hour: false} {
		header := sign("{}", "whsec_1", time.Now().Add(-age))
		if got := postroad.Verify([]byte("{}"), header, "whsec_1", 5*time.Minute); got != want {
			t.Errorf("signed %v ago: got %v, want %v", age, got, want)
		}
	}
}

func TestVerifyTakesOneTimeOfAtMost15Digits(t *testing.T) {
	now := time.Unix(1, 0)
	for _, signed := range []string{"", "+1", "0000000000000001", "1_0", "99999999999999999999"} {
		if postroad.VerifyAt(nil, signAt("", "whsec_1", signed), "whsec_1", time.Hour, now) {
			t.Errorf("t=%s was accepted", signed)
		}
	}
	if !postroad.VerifyAt(nil, signAt("", "whsec_1", "000000000000001"), "whsec_1", time.Hour, now) {
		t.Error("15 digits were refused")
	}
}

const bounced = `{"id": "evt_06604ca5a09e5ac3bf30764dc163", "type": "email.bounced", "created_at": "2026-01-31T12:00:03.811Z", "new": [1],
	"data": {"email_id": "em_1", "recipient_id": "rcp_1", "to": "bounce@example.net", "from": "bounces@example.com", "subject": "Hello",
	"smtp_code": 550, "smtp_response": "5.1.1 user unknown", "new": {}}}`

func TestParseEvent(t *testing.T) {
	// The second of two secrets is the one that signed it.
	event, err := postroad.ParseEvent([]byte(bounced), sign(bounced, "whsec_1", time.Now()), []string{"whsec_0", "whsec_1"}, 5*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	want := postroad.Event{
		ID: "evt_06604ca5a09e5ac3bf30764dc163", Type: postroad.EventBounced, CreatedAt: time.Date(2026, 1, 31, 12, 0, 3, 811e6, time.UTC),
		Data: postroad.EventData{
			EmailID: "em_1", RecipientID: "rcp_1", To: "bounce@example.net", From: "bounces@example.com", Subject: "Hello",
			SMTPCode: 550, SMTPResponse: "5.1.1 user unknown",
		},
	}
	if *event != want {
		t.Errorf("got %+v", event)
	}

	test := `{"id": "evt_2", "type": "webhook.another", "created_at": "2026-01-31T12:00:03Z", "data": {"test": true}}`
	event, err = postroad.ParseEvent([]byte(test), sign(test, "whsec_1", time.Now()), []string{"whsec_1"}, 5*time.Minute)
	if err != nil || event.Type != "webhook.another" || !event.Data.Test {
		t.Errorf("%+v, %v", event, err)
	}
}

func TestParseEventRefuses(t *testing.T) {
	for name, try := range map[string]struct {
		body, header string
		secrets      []string
		isForged     bool
	}{
		"another secret": {bounced, sign(bounced, "whsec_2", time.Now()), []string{"whsec_1"}, true},
		"no secret":      {bounced, sign(bounced, "", time.Now()), []string{""}, true},
		"no secrets":     {bounced, sign(bounced, "whsec_1", time.Now()), nil, true},
		"no header":      {bounced, "", []string{"whsec_1"}, true},
		"an old one":     {bounced, sign(bounced, "whsec_1", time.Now().Add(-time.Hour)), []string{"whsec_1"}, true},
		"no JSON":        {"{", sign("{", "whsec_1", time.Now()), []string{"whsec_1"}, false},
		"no event":       {"{}", sign("{}", "whsec_1", time.Now()), []string{"whsec_1"}, false},
	} {
		event, err := postroad.ParseEvent([]byte(try.body), try.header, try.secrets, 5*time.Minute)
		if event != nil || err == nil || errors.Is(err, postroad.ErrSignature) != try.isForged {
			t.Errorf("%s: %v, %v", name, event, err)
		}
	}
}

func sign(body, secret string, at time.Time) string {
	return signAt(body, secret, fmt.Sprint(at.Unix()))
}

func signAt(body, secret, at string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "." + body))
	return fmt.Sprintf("t=%s,v1=%x", at, mac.Sum(nil))
}
