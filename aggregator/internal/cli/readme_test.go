package cli_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestTheCertificatesOfTheLongWayAreMadeAsWritten(t *testing.T) {
	page, err := os.ReadFile("../../SETUP.md")
	if err != nil {
		t.Fatal(err)
	}
	dir, ran := t.TempDir(), 0
	for line := range strings.SplitSeq(string(page), "\n") {
		command, ok := strings.CutPrefix(strings.TrimSpace(line), "bursar tls ")
		if !ok {
			continue
		}
		args := append([]string{"tls"}, strings.Fields(strings.ReplaceAll(command, "/etc/bursar/tls", dir))...)
		if code, _, errs := (shell{}).bursar(t.Context(), args...); code != 0 {
			t.Fatalf("%s: exit code %d\n%s", line, code, errs)
		}
		ran++
	}
	if ran != 3 {
		t.Fatalf("%d commands were found, want 3", ran)
	}
	for _, name := range []string{"nemo-head1", "agg1"} {
		keys, err := identity.Load(identity.Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, name+".pem"), Key: filepath.Join(dir, name+".key")})
		if err != nil {
			t.Fatal(err)
		}
		if id, err := keys.Identity(); err != nil || id.Name != name {
			t.Errorf("%s: %v, %v", name, id, err)
		}
	}
}

// The script of the page for those who leave AUDITOR mails the report when something differs, and
// fails with the comparison, or where no mail is taken.
func TestMoving_ScriptOfTheTimer_MailsWhatDiffers(t *testing.T) {
	page, err := os.ReadFile("../../../plugins/source/auditor/MOVING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "```sh\n")
	script, _, _ = strings.Cut(script, "```")
	const report = "<!doctype html><p>zwölf missing</p>\n"
	for _, c := range []struct{ compared, mailed, want int }{{0, 0, 0}, {1, 0, 1}, {2, 0, 0}, {2, 75, 75}} {
		dir := t.TempDir()
		for name, text := range map[string]string{
			"bursar":   fmt.Sprintf("for last; do :; done\nprintf '%%s' '%s' > \"$last\"\nexit %d", report, c.compared),
			"sendmail": fmt.Sprintf("cat > %s/mail\nexit %d", dir, c.mailed),
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Env = []string{"RUNTIME_DIRECTORY=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		code := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			code, err = exit.ExitCode(), nil
		}
		if code != c.want || err != nil {
			t.Errorf("%+v: exit code %d, %v: %s", c, code, err, out)
		}
		sent, err := os.Open(filepath.Join(dir, "mail"))
		if (err == nil) != (c.compared == 2) {
			t.Errorf("%+v: %v", c, err)
		}
		if err != nil {
			continue
		}
		defer sent.Close()
		m, err := mail.ReadMessage(sent)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, m.Body))
		if string(text) != report || err != nil || m.Header.Get("Content-Type") != "text/html; charset=UTF-8" || m.Header.Get("To") == "" {
			t.Errorf("%+v: %v %q %v", c, err, text, m.Header)
		}
	}
}
