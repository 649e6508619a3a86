package sdk

import (
	"errors"
	"strings"
	"testing"
)

type testCheckpoint struct {
	V      int    `json:"v,omitempty"`
	Format int    `json:"format,omitempty"`
	Done   int64  `json:"done"`
	Name   string `json:"name,omitempty"`
}

func (c *testCheckpoint) Check() error {
	if c.Done < 0 {
		return errors.New("it is negative")
	}
	return nil
}

func TestDecodeCheckpoint_FormatsOfPlugins_AreRead(t *testing.T) {
	for text, want := range map[string]testCheckpoint{
		"":                               {Done: 7},
		`{"v":1,"done":1}`:               {V: 1, Done: 1},
		`{"format":1,"done":2,"new":[]}`: {Format: 1, Done: 2},
	} {
		got := testCheckpoint{Done: 7}
		if err := DecodeCheckpoint([]byte(text), 1, &got); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"x": "checkpoint: invalid character", "{}": "version 0 is not known", `{"v":2}`: "version 2 is not known, only 1; upgrade the plugin",
		`{"v":1,"done":"x"}`: "cannot unmarshal", `{"v":1,"done":-1}`: "checkpoint: it is negative", strings.Repeat(" ", maxCheckpoint+1): "are too many",
	} {
		if err := DecodeCheckpoint([]byte(text), 1, new(testCheckpoint)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
}

func TestEncodeCheckpoint_IsReadBack(t *testing.T) {
	c, got := testCheckpoint{V: 1, Done: 3, Name: "<a & b>"}, testCheckpoint{}
	text := EncodeCheckpoint(c)
	if string(text) != `{"v":1,"done":3,"name":"<a & b>"}` {
		t.Error(string(text))
	}
	if err := DecodeCheckpoint(text, 1, &got); err != nil || got != c {
		t.Error(got, err)
	}
}
