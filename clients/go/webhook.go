// Whether a webhook request comes from Postroad.

package postroad

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
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
