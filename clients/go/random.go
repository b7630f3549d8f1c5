// Keys and jitter, both from the system's randomness: math/rand gives every process the same numbers before Go 1.20.

package postroad

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
)

// newKey is a random UUID.
func newKey() string {
	var b [16]byte
	fill(b[:])
	b[6] = b[6]&0x0f | 0x40 // Version 4.
	b[8] = b[8]&0x3f | 0x80 // The variant of RFC 4122.
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// randomFraction is from 0 up to 1, with the 53 bits that a float64 has.
func randomFraction() float64 {
	var b [8]byte
	fill(b[:])
	return float64(binary.BigEndian.Uint64(b[:])>>11) / (1 << 53)
}

// fill panics where the system has no randomness: nothing that uses TLS works there either.
func fill(b []byte) {
	if _, err := rand.Read(b); err != nil {
		panic("postroad: " + err.Error())
	}
}
