package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verify reports whether the header Bursar-Signature is that of a body, made with the
// secret in the last five minutes.
func verify(secret, header string, body []byte, now time.Time) bool {
	var at string
	var given [][]byte
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(part, "=")
		switch name {
		case "t":
			at = value
		case "v1":
			mac, _ := hex.DecodeString(value) // what is no hex is no signature
			given = append(given, mac)
		}
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", at, body)
	want := mac.Sum(nil)
	return slices.ContainsFunc(given, func(g []byte) bool { return hmac.Equal(g, want) })
}
