package hcl_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
)

// decimals decodes the attribute x.
func decimals(text string) (hcl.Decimal, error) {
	file, diags := hcl.Parse("a.hcl", []byte("x = "+text+"\n"))
	var into struct {
		X hcl.Decimal `hcl:"x"`
	}
	diags.Extend(hcl.Decode(file, &into, file.Context()))
	return into.X, diags.Err()
}

func TestADecimalIsReadExactlyHoweverItIsWritten(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", `"0"`: "0", "12": "12", "0.012": "0.012", `"0.012"`: "0.012", "0.000000001": "0.000000001", `"0.1000"`: "0.1",
		"0.1 + 0.2": "0.3", "3 * 0.000002": "0.000006", "1e3": "1000", "12e-3": "0.012", `"007.50"`: "7.5",
		"999999999999999.999999999": "999999999999999.999999999", `"999999999999999.999999999"`: "999999999999999.999999999",
	} {
		d, err := decimals(text)
		if err != nil || d.String() != want || !d.IsSet() {
			t.Errorf("%s: %q %v, want %s", text, d, err, want)
		}
		again, err := hcl.ParseDecimal(d.String())
		if err != nil || again.Cmp(d.Billionths) != 0 {
			t.Errorf("%s: read again it is %v, %v", text, again, err)
		}
	}
}

func TestWhatIsNoExactDecimalIsAnErrorWithItsPlace(t *testing.T) {
	for text, want := range map[string]string{
		"-1": "negative", `"-0.5"`: "negative", "1 / 3": "digits after the point", "0.0000000001": "digits after the point",
		`"0.0000000001"`: "digits after the point", `"1,5"`: "digits, like", `"1e3"`: "digits, like", `""`: "digits, like", `"."`: "digits, like",
		`"1."`: "digits, like", `".5"`: "digits, like", "true": "expected a number", "[1]": "expected a number",
		"1000000000000000": "too large", `"1000000000000000"`: "too large", "1e300": "too large",
	} {
		if _, err := decimals(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.hcl:1") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if s := (hcl.Decimal{}).String(); s != "" {
		t.Errorf("no number is %q", s)
	}
}
