package action

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/message"
)

// keySize is how long the digest of a row's key is; that of its sums is behind it.
const keySize = 8

// rowOf is a digest of a summary: of what the receiver knows it by, and of the whole.
func rowOf(row []byte) string {
	short := func(b []byte, n int) string {
		sum := sha256.Sum256(b)
		return base64.RawURLEncoding.EncodeToString(sum[:])[:n]
	}
	return short([]byte(message.Key(message.Summaries, row)), keySize) + short(row, 6)
}

func keyOf(row string) string { return row[:min(keySize, len(row))] }

// changes says what a receiver that has the rows of before makes of those of a
// message: how many are new to it, replaced by others, and the same.
type changes struct {
	known                 bool // what the receiver has
	fresh, replaced, same int
	before                map[string]string
}

func changesFrom(before *sent) changes {
	c := changes{before: map[string]string{}}
	if before == nil {
		return c
	}
	for _, row := range before.Rows {
		c.before[keyOf(row)] = row
	}
	c.known = len(c.before) > 0
	return c
}

// markRow counts a row and says what it is to the receiver.
func (c *changes) markRow(row []byte) string {
	now := rowOf(row)
	switch had, there := c.before[keyOf(now)]; {
	case !there:
		c.fresh++
		return " new"
	case had != now:
		c.replaced++
		return " changed"
	}
	c.same++
	return ""
}

// showMessage is a message of summaries for people: each row that the receiver does not have
// so is marked behind its %%.
func (c *changes) showMessage(text []byte) string {
	if !c.known {
		return string(text)
	}
	header, rows := message.Records(text)
	out := bytes.NewBuffer(bytes.Clone(header))
	for _, row := range rows {
		out.Write(bytes.TrimSuffix(row, []byte("\n")))
		out.WriteString(c.markRow(row) + "\n")
	}
	return out.String()
}

// String is "2 new, 1 changed, 9 as they were", and "" where nothing is known.
func (c *changes) String() string {
	if !c.known {
		return ""
	}
	return fmt.Sprintf(", %d new, %d changed, %d as they were", c.fresh, c.replaced, c.same)
}
