//go:build e2e

package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
)

// apelTables have the columns, parameters and primary keys of the tables of APEL 2.5.0's
// schemas/server.sql that summaries and jobs go to, as far as they decide what is kept.
const apelTables = `
use test;
create table names (id int not null auto_increment primary key, name varchar(255) not null, index (name));
create table summaries (
  site int not null, month int not null, year int not null, user int not null, vo int not null, vogroup int not null, vorole int not null,
  host int not null, infrastructure varchar(20), description varchar(100), level varchar(50) not null default '', nodes int not null, processors int not null,
  wall bigint unsigned not null, cpu bigint unsigned not null, jobs bigint unsigned not null,
  primary key (site, month, year, user, vo, vorole, vogroup, host, infrastructure, nodes, processors, level));
create table jobs (
  site int not null, queue int not null, id varchar(255) not null, wall bigint unsigned, cpu bigint unsigned,
  nodes int unsigned not null default 0, processors int unsigned not null default 0, memory bigint unsigned,
  ended datetime not null, description varchar(100), infrastructure varchar(20), level decimal(10,3) not null,
  primary key (site, id, ended));
delimiter //
create function lookup(wanted varchar(255)) returns integer deterministic begin
  declare result integer;
  select id from names where name = wanted into result;
  if result is null then
    insert into names(name) values (wanted);
    set result = last_insert_id();
  end if;
  return result;
end //
create procedure keep_summary(site varchar(255), month int, year int, user varchar(255), vo varchar(255), vogroup varchar(255), vorole varchar(255),
  host varchar(255), infrastructure varchar(50), description varchar(100), level varchar(50), nodes int, processors int, wall bigint, cpu bigint, jobs int)
begin
  replace into summaries values (lookup(site), month, year, lookup(user), lookup(vo), lookup(vogroup), lookup(vorole),
    lookup(host), infrastructure, description, level, nodes, processors, wall, cpu, jobs);
end //
create procedure keep_job(site varchar(255), queue varchar(100), id varchar(255), wall int, cpu int, processors int, nodes int,
  ended datetime, description varchar(100), infrastructure varchar(20), memory int, level decimal(10,3))
begin
  replace into jobs values (lookup(site), lookup(queue), id, wall, cpu, ifnull(nodes, 0), ifnull(processors, 0), memory, ended, description, infrastructure, level);
end //
`

// The receiver of the tests keeps and refuses what the tables keep and refuse.
func TestAPEL_ReceiverOfTheTests_KeepsWhatMariaDBKeeps(t *testing.T) {
	db := rig.StartMariaDB(t)
	if _, err := db.SQL(t.Context(), apelTables); err != nil {
		t.Fatal(err)
	}
	chance, receiver := rand.New(rand.NewPCG(28, 3)), &apeltest.Receiver{}
	refused := 0
	for n := range 160 {
		header, row := "APEL-normalised-summary-message: v0.4", apelSummaryRow
		if n%2 == 1 {
			header, row = "APEL-individual-job-message: v0.4", apelJobRow
		}
		text, calls := header+"\n", "use test;\nstart transaction;\n"
		for range 1 + chance.IntN(10) {
			lines, call := row(chance)
			text, calls = text+lines+"%%\n", calls+call
		}
		took := receiver.Take(text, time.Now())
		if _, err := db.SQL(t.Context(), calls+"commit;\n"); (err == nil) != (took == nil) {
			t.Fatalf("message %d: MariaDB says %v, the receiver of the tests %v:\n%s", n, err, took, text)
		} else if err != nil {
			refused++
		}
	}
	for _, c := range []struct{ query, header, count string }{
		{"select count(*), sum(wall), sum(cpu), sum(jobs) from summaries", "APEL-norm", "NumberOfJobs"},
		{"select count(*), sum(wall), sum(cpu), 0 from jobs", "APEL-indi", ""},
	} {
		got, err := db.SQL(t.Context(), "use test; "+c.query)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%d\t%d\t%d\t%d\n", len(receiver.Rows(c.header)), receiver.Sum(c.header, "WallDuration"), receiver.Sum(c.header, "CpuDuration"), receiver.Sum(c.header, c.count))
		if got != want || len(receiver.Rows(c.header)) < 30 {
			t.Errorf("%s: MariaDB has %q, the receiver of the tests %q", c.query, got, want)
		}
	}
	if refused < 10 || refused > 80 {
		t.Errorf("%d of 160 messages were refused", refused)
	}
}

// apelText is one of few texts in any case, now and then a long one, and "" for none.
func apelText(chance *rand.Rand, list ...string) string {
	if chance.IntN(300) == 0 {
		return strings.Repeat("x", []int{20, 21, 100, 101, 255, 256}[chance.IntN(6)])
	}
	return inAnyCase(chance, list...)
}

// inAnyCase is one of few texts in any case.
func inAnyCase(chance *rand.Rand, list ...string) string {
	text := []byte(list[chance.IntN(len(list))])
	for i := range text {
		if chance.IntN(2) == 0 {
			text[i] = strings.ToUpper(string(text[i]))[0]
		}
	}
	return string(text)
}

// apelNames are alike to a database or not.
func apelNames() []string {
	return []string{"", "none", "null", "a", "a.", "a-", "a_", "/a", "a=b", "a b", "a  b", "ab", "a%b", `a\b`}
}

// apelNumber is a small number or one about the limits of 32 and 64 bits; "" for none.
func apelNumber(chance *rand.Rand, optional bool) string {
	switch k := chance.IntN(200); {
	case k == 0:
		return strconv.FormatInt([]int64{1<<31 - 1, 1 << 31, 1 << 40}[chance.IntN(3)], 10)
	case k == 1 && optional:
		return ""
	}
	return strconv.Itoa(chance.IntN(3))
}

// apelRow are the lines of a row, and its values as the loader hands them on: a text
// that is none is None, and such a number null.
func apelRow(fields []string, value func(name string) string) (lines string, values []string) {
	for _, name := range fields {
		v := value(name)
		if v != "" {
			lines += name + ": " + v + "\n"
		}
		_, number := strconv.ParseInt(v, 10, 64)
		switch none := slices.Contains([]string{"", "none", "null"}, strings.ToLower(v)); {
		case none && slices.Contains([]string{"NodeCount", "Processors", "MemoryReal"}, name):
			v = "null"
		case none:
			v = "'None'"
		case number != nil:
			v = "'" + strings.NewReplacer("\\", `\\`, "'", "''").Replace(v) + "'"
		}
		values = append(values, v)
	}
	return lines, values
}

// apelSummary are the lines of a row of summaries, and what the loader calls with it.
func apelSummary(level string, value func(name string) string) (lines, call string) {
	lines, v := apelRow(strings.Fields("Site Month Year GlobalUserName VO VOGroup VORole SubmitHost Infrastructure InfrastructureDescription NodeCount Processors WallDuration CpuDuration NumberOfJobs"), value)
	lines = strings.Replace(lines, "NumberOfJobs:", fmt.Sprintf("NormalisedWallDuration: {%s: 1}\nNormalisedCpuDuration: {%s: 1}\nNumberOfJobs:", level, level), 1)
	return lines, fmt.Sprintf("call keep_summary(%s, '%s', %s);\n", strings.Join(v[:10], ", "), level, strings.Join(v[10:], ", "))
}

// apelJob is the same of a row of jobs.
func apelJob(ended time.Time, level string, value func(name string) string) (lines, call string) {
	lines, v := apelRow(strings.Fields("Site Queue LocalJobId WallDuration CpuDuration Processors NodeCount StartTime EndTime InfrastructureDescription InfrastructureType MemoryReal"), value)
	v[8] = "'" + ended.UTC().Format(time.DateTime) + "'"
	return lines + "ServiceLevel: {HEPscore23: " + level + "}\n", fmt.Sprintf("call keep_job(%s, %s);\n", strings.Join(slices.Delete(v, 7, 8), ", "), level)
}

func apelSummaryRow(chance *rand.Rand) (lines, call string) {
	return apelSummary([]string{"HEPscore23", "hepspec"}[chance.IntN(2)], func(name string) string {
		switch name {
		case "Site":
			return apelText(chance, "uni", "lake")
		case "Month":
			return "3"
		case "Year":
			return "2026"
		case "VO":
			return apelText(chance, apelNames()...)
		case "WallDuration", "CpuDuration":
			return strconv.Itoa(chance.IntN(10_000))
		case "NumberOfJobs":
			return apelNumber(chance, false)
		case "NodeCount", "Processors":
			return apelNumber(chance, true)
		}
		return apelText(chance, "", "none", "x")
	})
}

func apelJobRow(chance *rand.Rand) (lines, call string) {
	ended := time.Date(2026, 3, 1, 12, 0, chance.IntN(3), 0, time.UTC)
	level := "15.25"
	if k := chance.IntN(100); k < 2 {
		level = []string{"9999999.999", "10000000"}[k]
	}
	return apelJob(ended, level, func(name string) string {
		switch name {
		case "Site":
			return apelText(chance, "uni", "lake")
		case "LocalJobId":
			return apelText(chance, apelNames()[3:]...)
		case "WallDuration", "CpuDuration":
			return apelNumber(chance, false)
		case "Processors", "NodeCount", "MemoryReal":
			return apelNumber(chance, true)
		case "StartTime", "EndTime":
			return strconv.FormatInt(ended.Unix(), 10)
		}
		return apelText(chance, "", "none", "x")
	})
}

// loadAPEL makes of a message what the loader calls.
func loadAPEL(t *testing.T, text string) (calls string) {
	t.Helper()
	header, body, _ := strings.Cut(text, "\n")
	for block := range strings.SplitSeq(body, "%%\n") {
		row := map[string]string{}
		for line := range strings.Lines(block) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			row[name] = value
		}
		value := func(name string) string { return row[name] }
		switch {
		case len(row) == 0 || strings.HasPrefix(header, "APEL-sync"):
		case strings.HasPrefix(header, "APEL-normalised"):
			_, call := apelSummary("HEPscore23", value)
			calls += call
		default:
			ended, err := strconv.ParseInt(row["EndTime"], 10, 64)
			if err != nil {
				t.Fatalf("%v in\n%s", err, block)
			}
			_, call := apelJob(time.Unix(ended, 0), "10", value)
			calls += call
		}
	}
	return calls
}

// What random records become is whole in the database of the receiver.
func TestAPEL_RandomRecords_AreWholeInMariaDB(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 28))
	s := site.New(t)
	now := time.Now().UTC()
	month := time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)
	folders := map[string]string{"summaries": t.TempDir(), "jobs": t.TempDir()}
	blocks := ""
	for send, folder := range folders {
		blocks += fmt.Sprintf(apelRandom, send, month.Format("2006-01"), send, folder)
	}
	a := &apelSite{t: t, Site: s, cluster: s.Cluster(1, blocks)}
	a.cluster.Start()
	sums, all := map[string][3]int64{}, [3]int64{}
	var records []string
	for n := range 600 {
		voms := inAnyCase(chance, apelNames()...)
		seconds, cpu := 1+chance.Int64N(100_000), chance.Int64N(800_000)
		stop := month.Add(time.Duration(chance.Int64N(20*86_400)+200_000) * time.Second)
		records = append(records, apelRecord(chance, fmt.Sprintf("%d%s", n, inAnyCase(chance, apelNames()...)), voms, stop, seconds, cpu))
		vo := strings.ToLower(voms)
		if vo == "" || vo == "null" {
			vo = "none"
		}
		for i, amount := range []int64{1, seconds, cpu} {
			sum := sums[vo]
			sum[i] += amount
			sums[vo], all[i] = sum, all[i]+amount
		}
	}
	a.node().Post("/records", "["+strings.Join(records, ",")+"]")
	db := rig.StartMariaDB(t)
	if _, err := db.SQL(t.Context(), apelTables); err != nil {
		t.Fatal(err)
	}
	for send, folder := range folders {
		a.must("run", "apel/"+send)
		if r := a.ended("apel/"+send, 1); r.Run.Done != r.Run.Effects || r.Run.Partial {
			t.Errorf("%+v", r.Run)
		}
		for _, text := range readOutgoing(t, folder) {
			if _, err := db.SQL(t.Context(), "use test;\nstart transaction;\n"+loadAPEL(t, text)+"commit;\n"); err != nil {
				t.Errorf("MariaDB refuses %v:\n%s", err, text)
			}
		}
	}
	var want []string
	for vo, s := range sums {
		want = append(want, fmt.Sprintf("%s\t%d\t%d\t%d", vo, s[0], s[1], s[2]))
	}
	got, err := db.SQL(t.Context(), "use test; select lower(name), sum(jobs), sum(wall), sum(cpu) from summaries join names on names.id = vo group by name")
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.ReplaceAll(strings.TrimSuffix(got, "\n"), `\\`, `\`), "\n") // the client escapes
	slices.Sort(list)
	slices.Sort(want)
	if !slices.Equal(list, want) {
		t.Errorf("MariaDB has of the summaries\n%s\nthe records say\n%s", strings.Join(list, "\n"), strings.Join(want, "\n"))
	}
	got, err = db.SQL(t.Context(), "use test; select count(*), sum(wall), sum(cpu) from jobs")
	if want := fmt.Sprintf("%d\t%d\t%d\n", all[0], all[1], all[2]); err != nil || got != want {
		t.Errorf("MariaDB has of the jobs %q, the records say %q: %v", got, want, err)
	}
}

// apelRandom is an action that reports all that it can of a record.
const apelRandom = `
action "apel" %q {
  schedule = "@manual"
  config {
    from      = %q
    send      = %q
    site "UNI-A" { ids = ["a"] }
    fields {
      VO             = try(record.meta.vo[0], "None")
      VOGroup        = record.meta.group[0]
      GlobalUserName = record.meta.user[0]
      SubmitHost     = record.meta.host[0]
      Queue          = record.meta.queue[0]
      Infrastructure = record.meta.kind[0]
      NodeCount      = record.components.Nodes.amount
    }
    benchmark "HEPscore23" { score = 10 }
    directory { path = %q }
  }
}
`

// apelRecord is a record as AUDITOR's clients post it, with texts that are alike to a
// database or not.
func apelRecord(chance *rand.Rand, id, vo string, stop time.Time, seconds, cpu int64) string {
	var meta []string
	for key, value := range map[string]string{
		"site_id": "a", "vo": vo, "host": "ce-" + inAnyCase(chance, "a", "b"), "group": inAnyCase(chance, apelNames()...), "user": inAnyCase(chance, apelNames()...),
		"queue": strings.Repeat("q", chance.IntN(120)), "kind": inAnyCase(chance, "", "grid", "cloud"), "collector_type": strings.Repeat("c", chance.IntN(120)),
	} {
		if value != "" {
			meta = append(meta, fmt.Sprintf("%q:[%q]", key, value))
		}
	}
	return fmt.Sprintf(`{"record_id":%q,"meta":{%s},"components":[{"name":"Cores","amount":%d,"scores":[]},{"name":"Nodes","amount":%d,"scores":[]},{"name":"TotalCPU","amount":%d,"scores":[]}],"start_time":%q,"stop_time":%q}`,
		id, strings.Join(meta, ","), 1+chance.IntN(2), 1+chance.IntN(2), cpu, stop.Add(-time.Duration(seconds)*time.Second).Format(time.RFC3339), stop.Format(time.RFC3339))
}
