package accounting

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestATableIsReadWithItsLines(t *testing.T) {
	text := "\xef\xbb\xbfUser, Group ,NAME\n\n# is a user\nann,g,\"Ann, \"\"the first\"\"\"\nbob,g\n,,\n"
	table, err := ReadDirectoryTable("p.csv", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(table.Columns, []string{"user", "group", "name"}) || fmt.Sprint(table.Lines) != "[3 4 5]" {
		t.Errorf("%+v", table)
	}
	if got := fmt.Sprintf("%q", table.Rows); got != `[["# is a user"] ["ann" "g" "Ann, \"the first\""] ["bob" "g"]]` {
		t.Error(got)
	}
}

func TestWhatIsWrongInATableHasLineAndColumn(t *testing.T) {
	for text, want := range map[string]string{
		"":                                     "p.csv:1:1: the file is empty",
		"user,grp\n":                           `p.csv:1:6: there is no column "grp"; want some of user, group`,
		"user,user\n":                          `p.csv:1:6: duplicate column "user"`,
		"user\na,b\n":                          "p.csv:2:3: the row has 2 cells, and the first line names 1 columns",
		"user\tpi\na\tx\n":                     `p.csv:2:3: pi is "x", and of which project it is is not said`,
		"project,exempt\na,yes\nb,maybe\n":     `p.csv:3:3: exempt is "maybe"; want yes, no, or nothing`,
		"user,from\na,2026-01-01\nb,1.1.2026":  `p.csv:3:3: from: invalid time "1.1.2026"`,
		"user,group\na,\"g\nb,h\n":             "p.csv:",
		"group;name\ng;x\n":                    `p.csv:2:3: name is "x", and of which user it is is not said`,
		"group,exempt,user\ng,yes,x\n":         `p.csv:2:3: exempt is "yes", and of which project it is is not said`,
		"user,from,to\na,2026-01-01,2026-1-1,": "p.csv:2:23: the row has 4 cells",
	} {
		if _, err := ReadDirectoryTable("p.csv", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestTwentyThousandUsersAreADirectory(t *testing.T) {
	var b strings.Builder
	b.WriteString("user,group,project,pi,name,email\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "u%05d,g%03d,p%02d,pi%02d,User %d of the site,u%05d@example.org\n", i, i%400, i%400%40, i%400%40, i, i)
	}
	table, err := ReadDirectoryTable("p.csv", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	d := made(t, DirectorySettings{Tables: []DirectoryTable{table}})
	if p, _ := d.Project("u19999", "", 0); p != "p39" {
		t.Error(p)
	}
	if pi, _ := d.PI("p39", 0); pi != "pi39" || len(d.People()) != 20_000 {
		t.Error(pi, len(d.People()))
	}
}

func FuzzReadTable(f *testing.F) {
	f.Add([]byte("user,group,project,pi,name,email,exempt,from,to\nann,g,p,bell,Ann,a@x,yes,2026-01-01,2027-01-01\n"))
	f.Add([]byte("user;group\n\"a;b\";g\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := ReadDirectoryTable("p.csv", text)
		if err != nil {
			return
		}
		if len(table.Rows) != len(table.Lines) {
			t.Error(table)
		}
		if d, err := NewDirectory(DirectorySettings{Tables: []DirectoryTable{table}}, nil); err == nil {
			for _, key := range d.Keys() {
				key.Of([]string{"ann", "g"}, []bool{false, false}, 0)
			}
		}
	})
}

func FuzzParseDecimal(f *testing.F) {
	f.Add("1.9")
	f.Add("1000000000.000000000")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDecimal(text)
		if err != nil {
			return
		}
		if again, err := ParseDecimal(d.String()); err != nil || again != d {
			t.Error(text, d, again, err)
		}
	})
}
