// Whether a webhook request comes from Postroad, and what it tells.

package postroad

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Verify tells whether a request was signed with the secret, at most tolerance from now (5 minutes is usual).
// It needs the bytes of the body as they came, and the header Service-Signature.
func Verify(rawBody []byte, header, secret string, tolerance time.Duration) bool {
	return VerifyAt(rawBody, header, secret, tolerance, time.Now())
}

// VerifyAt is Verify with a clock of your own, for tests.
func VerifyAt(rawBody []byte, header, secret string, tolerance time.Duration, now time.Time) bool {
	var times, signatures []string
	for _, part := range strings.Split(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			times = append(times, value)
		case "v1":
			signatures = append(signatures, value)
		}
	}
	if secret == "" || len(times) != 1 || len(times[0]) > 15 {
		return false
	}
	signed, err := strconv.ParseUint(times[0], 10, 63)
	if err != nil {
		return false
	}
	age := now.Unix() - int64(signed)
	if limit := int64(tolerance / time.Second); age > limit || -age > limit {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(times[0] + "."))
	mac.Write(rawBody)
	expected := []byte(hex.EncodeToString(mac.Sum(nil)))
	for _, signature := range signatures {
		if hmac.Equal(expected, []byte(signature)) {
			return true
		}
	}
	return false
}

// Event is what a webhook request tells: the result of one recipient. Retries and replays have the same ID.
type Event struct {
	ID        string    `json:"id"`
	Type      string    `json:"type"` // EventDelivered, EventBounced, EventFailed or EventTest.
	CreatedAt time.Time `json:"created_at"`
	Data      EventData `json:"data"`
}

// EventData is about the recipient. What is not known is empty.
type EventData struct {
	EmailID      string `json:"email_id,omitempty"`
	RecipientID  string `json:"recipient_id,omitempty"`
	To           string `json:"to,omitempty"`
	From         string `json:"from,omitempty"` // The envelope sender.
	Subject      string `json:"subject,omitempty"`
	SMTPCode     int    `json:"smtp_code,omitempty"` // 0 when there was no reply.
	SMTPResponse string `json:"smtp_response,omitempty"`
	Test         bool   `json:"test"` // Of EventTest only.
}

// ParseEvent verifies a request as Verify does, with any of the secrets, and reads its event. The error is ErrSignature for a
// request that is not to be trusted.
func ParseEvent(rawBody []byte, header string, secrets []string, tolerance time.Duration) (*Event, error) {
	return ParseEventAt(rawBody, header, secrets, tolerance, time.Now())
}

// ParseEventAt is ParseEvent with a clock of your own, for tests.
func ParseEventAt(rawBody []byte, header string, secrets []string, tolerance time.Duration, now time.Time) (*Event, error) {
	for _, secret := range secrets {
		if VerifyAt(rawBody, header, secret, tolerance, now) {
			return readEvent(rawBody)
		}
	}
	return nil, &Error{Code: CodeInvalidSignature, Message: "the webhook request is not signed with this secret, or not signed recently"}
}

func readEvent(rawBody []byte) (*Event, error) {
	event := new(Event)
	// encoding/json would put other characters in the place of what is not UTF-8.
	if !utf8.Valid(rawBody) || json.Unmarshal(rawBody, event) != nil || event.ID == "" || event.Type == "" {
		return nil, errors.New("postroad: the body is signed, but is not an event")
	}
	return event, nil
}
