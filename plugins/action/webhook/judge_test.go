package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/post"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestAStatusDecidesWhatBecomesOfAnEffect(t *testing.T) {
	a, err := configured(text("url", "https://example.org"))
	if err != nil {
		t.Fatal(err)
	}
	for want, codes := range map[sdk.Outcome][]int{
		sdk.Done:     {200, 201, 202, 204, 207},
		sdk.Retry:    {408, 425, 429, 503},
		sdk.Unknown:  {409, 500, 501, 502, 504, 507, 599},
		sdk.Rejected: {300, 301, 304, 307, 400, 401, 402, 403, 404, 405, 407, 410, 411, 412, 413, 415, 422, 431, 451, 499},
	} {
		for _, code := range codes {
			r := a.receiver.Judge(&http.Response{StatusCode: code, Header: http.Header{"Retry-After": {"7"}}}, []byte("words"), time.Now())
			if again := want == sdk.Retry || want == sdk.Unknown; r.Outcome != want || !strings.Contains(r.Message, "words") || again != (r.RetryAfter == 7*time.Second) {
				t.Errorf("%d: %+v, want %d", code, r, want)
			}
		}
	}
	for code, want := range map[int]string{401: "look at secret", 403: "look at secret", 404: "check url", 410: "check url", 413: "set a smaller batch"} {
		if r := a.receiver.Judge(&http.Response{StatusCode: code}, nil, time.Now()); !strings.Contains(r.Message, want) {
			t.Errorf("%d: %+v", code, r)
		}
	}
}

// signed is a body and its signatures of two secrets, made with openssl.
const (
	signedBody = `{"format":1}`
	signedWith = "t=1700000000,v1=6fda9fdf4b8d20c2fc830b576f10a43d525c8255de728d696ec1a6b7fde523b4,v1=1a463be0883a980a1a8d12f30deebe8d7529257e24d55223bcaf0f9a63bb994f"
)

func TestTheSignatureIsThatOfOpenSSL(t *testing.T) {
	secrets, at := []string{secret, "fedcba9876543210"}, time.Unix(1_700_000_000, 0)
	if got := post.Signature(secrets, at, []byte(signedBody)); got != signedWith {
		t.Errorf("%s, want %s", got, signedWith)
	}
	for _, s := range secrets {
		if !verify(s, signedWith, []byte(signedBody), at.Add(time.Minute)) {
			t.Error("the signature is not accepted")
		}
	}
	if verify(secret, signedWith, []byte(signedBody), at.Add(10*time.Minute)) || verify(secret, signedWith, []byte(`{"format":2}`), at) || verify("0123", signedWith, []byte(signedBody), at) {
		t.Error("an old one, another body or another secret is accepted")
	}
}

// sample is the first block of a language in the README.
func sample(t *testing.T, language string) string {
	t.Helper()
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```"+language+"\n")
	code, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("the README has no sample in %s", language)
	}
	return code
}

func TestTheSampleInGoIsTheOneThatTheTestsUse(t *testing.T) {
	tested, err := os.ReadFile("verify_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if code := sample(t, "go"); !strings.Contains(string(tested), code) {
		t.Errorf("verify_test.go does not have\n%s", code)
	}
}

func TestTheSampleInPythonAcceptsOnlyWhatIsSigned(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	program := sample(t, "python") + `
import sys
secret, body, header = sys.argv[1].encode(), sys.argv[2].encode(), sys.argv[3]
assert verify(secret, header, body, 1700000060)
assert not verify(secret, header, body, 1700000600)
assert not verify(secret, header, body + b" ", 1700000060)
assert not verify(b"0123", header, body, 1700000060)
assert not verify(secret, "", body, 1700000060)
assert not verify(secret, "t=x,v1=00", body, 1700000060)
`
	if out, err := exec.Command(python, "-c", program, secret, signedBody, signedWith).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestTheSampleInTheShellGivesTheSignature(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	shell := exec.Command("sh", "-c", sample(t, "sh"))
	shell.Env = append(os.Environ(), "secret="+secret, "t=1700000000", "body="+signedBody)
	out, err := shell.CombinedOutput()
	if err != nil || !strings.Contains(signedWith, "v1="+strings.TrimSpace(string(out))+",") {
		t.Errorf("%v\n%s", err, out)
	}
}
