// Package sha256hex names content by its SHA-256, in hex.
package sha256hex

import (
	"crypto/sha256"
	"encoding/hex"
)

// Of returns the SHA-256 of data.
func Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
