// Verify against the vectors that all clients share.

package postroad_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
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

func sign(body, secret string, at time.Time) string {
	return signAt(body, secret, fmt.Sprint(at.Unix()))
}

func signAt(body, secret, at string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "." + body))
	return fmt.Sprintf("t=%s,v1=%x", at, mac.Sum(nil))
}
