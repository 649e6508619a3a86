package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// payloadVersion is the format of a payload.
const payloadVersion = 1

// payload is what one effect sends: a line of JSON, and behind it the bytes as they
// are sent, signed where they are signed.
type payload struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"` // when it was planned
	ID      string    `json:"empaid"`
	Signed  bool      `json:"signed"`
	data    []byte
}

// messageID is the id of a message for people on both sides: YYYYMMDD/YYYYMMDDhhmmss.
// The messages of one plan are counted by the second.
func messageID(now time.Time, number int) string {
	return now.UTC().Add(time.Duration(number) * time.Second).Format("20060102/20060102150405")
}

func (p payload) encodePayload() ([]byte, error) {
	p.Version = payloadVersion
	head, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), p.data...), nil
}

func readPayload(b []byte) (payload, error) {
	head, data, ok := bytes.Cut(b, []byte("\n"))
	if !ok {
		return payload{}, errors.New("the effect cannot be read: it has no head")
	}
	p := payload{data: data}
	if err := json.Unmarshal(head, &p); err != nil {
		return payload{}, fmt.Errorf("the effect cannot be read: %w", err)
	}
	if p.Version != payloadVersion {
		return payload{}, fmt.Errorf("the effect has format %d, and this plugin knows %d", p.Version, payloadVersion)
	}
	return p, nil
}
