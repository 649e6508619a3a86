package mapping_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/mapping"
)

// versioned compiles a record block for versions of the agent and of the source's plugin.
func versioned(t *testing.T, body, agent, source string) *mapping.Mapper {
	t.Helper()
	file, diags := hcl.Parse("agent.hcl", []byte(body))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	m, diags := mapping.Compile(mapping.Options{
		Agent: "head1", AgentVersion: agent, Type: "slurm", SourceVersion: source, Label: "nemo", Attributes: attributes, Default: fallback, Record: file.Body,
	})
	if diags.HasErrors() {
		t.Fatal(body, diags)
	}
	return m
}

func TestVersions_InAnyExpression_AreThoseOfTheOptions(t *testing.T) {
	for body, want := range map[string]string{ // the meta entry x, for each pair of versions
		`meta = { x = agent.version }`:                                         "[1.2.3] [1.2.3] []",
		`meta = { x = source.version }`:                                        "[2.0.0] [] [2.0.0]",
		`meta = { x = upper(source.version == null ? "" : source.version) }`:   "[2.0.0] [] [2.0.0]",
		`meta = { x = [agent.version, source.version] }`:                       "[1.2.3 2.0.0] [1.2.3] [2.0.0]",
		`meta = { x = "${coalesce(agent.version, "?")} on ${source.label}" }`:  "[1.2.3 on nemo] [1.2.3 on nemo] [? on nemo]",
		`meta = merge({}, { x = agent["version"] })`:                           "[1.2.3] [1.2.3] []",
		`meta = { x = jsonencode(agent) }`:                                     `[{"name":"head1","version":"1.2.3"}] [{"name":"head1","version":"1.2.3"}] [{"name":"head1","version":null}]`,
		`meta = { x = "${job.user} by ${source.label}, ${source.type}" }`:      "[alice by nemo, slurm] [alice by nemo, slurm] [alice by nemo, slurm]",
		`meta = { x = can(agent.version) && can(source["version"]) ? "y" : 0}`: "[y] [y] [y]",
	} {
		var got []string
		for _, v := range [][2]string{{"1.2.3", "2.0.0"}, {"1.2.3", ""}, {"", "2.0.0"}} {
			r, _, err := versioned(t, body, v[0], v[1]).Map(job())
			if err != nil {
				t.Fatal(body, err)
			}
			got = append(got, fmt.Sprint(r.Meta.Get("x")))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestFingerprint_OfAnotherVersion_ChangesWhereTheMappingNamesIt(t *testing.T) {
	for body, named := range map[string]bool{
		`state = agent.name`:                              false,
		`state = source.label`:                            false,
		`state = agent.version`:                           true,
		`state = "a${source.version}"`:                    true,
		`meta = { x = try(agent["version"], null) }`:      true,
		`meta = { x = jsonencode(source) }`:               true,
		`component "Cores" { when = can(agent.version) }`: true,
	} {
		before := versioned(t, body, "1", "1").Fingerprint(job())
		for _, v := range [][2]string{{"2", "1"}, {"1", "2"}, {"", "1"}} {
			if changed := versioned(t, body, v[0], v[1]).Fingerprint(job()) != before; changed != named {
				t.Errorf("%s, versions %q: changed %t, want %t", body, v, changed, named)
			}
		}
	}
}

func TestVersions_MisspelledName_IsSuggested(t *testing.T) {
	for _, name := range []string{"agent", "source"} {
		_, diags := compile(t, "state = "+name+".versio")
		if !strings.Contains(diags.Error(), `did you mean "version"`) {
			t.Error(diags)
		}
	}
}
