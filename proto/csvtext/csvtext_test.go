package csvtext_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/proto/csvtext"
)

func TestCell_Formula_GetsAQuoteAndNumbersStay(t *testing.T) {
	for cell, want := range map[string]string{
		"": "", "atlas": "atlas", "=1+1": "'=1+1", "+cmd|' /C calc'!A0": "'+cmd|' /C calc'!A0", "-2+3": "'-2+3", "@SUM(A1)": "'@SUM(A1)",
		"\t=1": "'\t=1", "\r=1": "'\r=1", "-": "'-", "-12.5": "-12.5", "+3": "+3", "1e3": "1e3", "-1e-9": "-1e-9", "a=b": "a=b",
	} {
		if got := csvtext.Cell(cell); got != want {
			t.Errorf("%q is %q, want %q", cell, got, want)
		}
	}
	if got := csvtext.Harmless("-12"); got != "'-12" {
		t.Errorf("a text that looks like a number is %q", got)
	}
}
